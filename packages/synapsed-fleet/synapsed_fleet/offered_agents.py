"""The agents of this host, as the other hosts may use them (`[fleet] accept`)."""

from synapsed.errors import Forbidden
from synapsed.interfaces import Activity, AgentView, Control, ProcessState
from synapsed.model.external import alias_of
from synapsed_fleet.fleet_config import FleetConfig


class OfferedAgents:
    """The agents that other hosts may send to, and the idle ones of them."""

    def __init__(self, control: Control, config: FleetConfig) -> None:
        self._control = control
        self._config = config

    def accepts(self, name: str) -> bool:
        accept = self._config.accept
        if "*" in accept or name in accept:
            return True
        teams = self._control.directory.teams()
        return any(name in teams.get(one.removeprefix("team:"), ()) for one in accept if one.startswith("team:"))

    def agent(self, address: str) -> str:
        """See `incoming.Accepting`."""
        agent_id = self._control.directory.resolve(address, folders=False)
        if alias_of(agent_id) is not None:
            raise Forbidden(f"{address[:80]} is not an agent of {self._config.name}", agent=address[:80])
        name = self._control.directory.view(agent_id).name
        if not self.accepts(name):
            raise Forbidden(
                f"{self._config.name} takes no messages of other hosts for {name}: 'accept' under [fleet] of its "
                "config.toml says for whom it does",
                agent=name,
            )
        return agent_id

    def idle(self, cls: str) -> str | None:
        """See `class_work.IdleAgents`."""
        views = self._control.directory.agents()
        skilled = {
            profile.name
            for profile in self._control.directory.profiles({view.type for view in views})
            if any(skill.get("id") == cls for skill in profile.skills)
        }
        for view in views:
            if (view.type == cls or view.type in skilled) and _is_idle(view) and self.accepts(view.name):
                return view.id
        return None


def _is_idle(view: AgentView) -> bool:
    there = view.state is ProcessState.PARKED or (
        view.state is ProcessState.RUNNING and view.activity is Activity.READY
    )
    return there and view.queue == 0 and view.task is None and view.held is None
