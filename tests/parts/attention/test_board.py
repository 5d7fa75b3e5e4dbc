"""What is open over all agents, by the events of the log."""

from synapsed.model.agent import ProcessState
from synapsed.model.events import (
    REMOVED,
    AttentionChanged,
    Event,
    EventData,
    InputRequired,
    StateChanged,
)
from synapsed.model.task import Prompt, PromptOption
from synapsed.parts.attention import board as boards
from synapsed.parts.attention.board import Board

BASH = Prompt(
    prompt_id="p1",
    type="permission",
    prompt="Bash command\n\n   npm  run\n   test --all\n   Run the tests\n\nDo you want to proceed?",
    options=[PromptOption(key="1", label="Yes"), PromptOption(key="2", label="No")],
)


class Log:
    """Events with ids, given to a board as they come."""

    def __init__(self) -> None:
        self.board = Board()
        self.all: list[Event] = []

    def tell(self, data: EventData, agent: str = "a", task: str | None = None) -> Event:
        number = len(self.all) + 1
        event = Event(id=number, at=float(number), agent_id=agent, task_id=task, context_id=None, data=data)
        self.all.append(event)
        self.board.take(event)
        return event

    def asked(self, prompt: Prompt = BASH, agent: str = "a", name: str = "i1", kind: str = "permission") -> Event:
        self.tell(InputRequired(prompt=prompt), agent)
        told = AttentionChanged(
            id=name, state="opened", kind=kind, question=prompt.prompt[:20], prompt_id=prompt.prompt_id
        )
        return self.tell(told, agent)

    def commands(self) -> list[str | None]:
        return [item.prompt.command if item.prompt else None for item in self.board.items]


def about(command: str | None = None, diff: str | None = None) -> Prompt:
    return BASH.model_copy(update={"command": command, "diff": diff})


def test_an_item_has_the_whole_prompt() -> None:
    log = Log()
    log.asked(about("npm run test --all"))
    (item,) = log.board.items
    assert (item.question, item.prompt_id, item.kind, item.since) == (BASH.prompt, "p1", "permission", 2.0)
    assert item.prompt == about("npm run test --all")


def test_more_that_is_told_of_an_open_prompt() -> None:
    log = Log()
    log.asked()
    log.asked(agent="b", name="i2")
    assert log.commands() == [None, None]
    log.tell(InputRequired(prompt=about("npm run test --all")))
    assert log.commands() == ["npm run test --all", None]
    log.tell(InputRequired(prompt=about(diff="+++ f").model_copy(update={"prompt_id": "another"})))
    assert log.commands() == ["npm run test --all", None]


def test_it_is_over_when_it_is_answered_or_gone() -> None:
    log = Log()
    for number, state in enumerate(("answered", "gone")):
        log.asked(agent=f"a{number}", name=f"i{number}")
        assert len(log.board) == 1
        log.tell(AttentionChanged(id=f"i{number}", state=state, kind="permission"), f"a{number}")
        assert log.board.items == []


def test_with_its_agent_everything_of_it_goes() -> None:
    log = Log()
    log.asked()
    log.asked(agent="b", name="i2")
    log.tell(StateChanged(state=REMOVED))
    assert [item.id for item in log.board.items] == ["i2"]


def test_kinds_of_an_older_log() -> None:
    log = Log()
    for number, (was, now) in enumerate(
        {"trust": "question", "login": "sign_in", "screen": "unreadable", "selection": "question"}.items()
    ):
        log.asked(name=f"i{number}", kind=was)
        assert log.board.items[-1].kind == now


def test_a_new_daemon_finds_the_same() -> None:
    log = Log()
    log.asked(agent="b", name="answered")
    log.tell(AttentionChanged(id="answered", state="answered", kind="permission"), "b")
    opened = log.asked()
    log.tell(InputRequired(prompt=about("npm run test --all")))
    log.tell(StateChanged(state=ProcessState.RUNNING))
    again = Board()
    again.restore([opened], [event for event in log.all if event.agent_id == "a"])
    assert again.items == log.board.items
    assert again.running_since("a") == float(len(log.all))


def test_it_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr(boards, "ITEMS_MAX", 3)
    log = Log()
    log.asked(name="asks")
    for number in range(5):
        log.tell(AttentionChanged(id=f"f{number}", state="opened", kind="failure"))
    assert [item.id for item in log.board.items] == ["asks", "f3", "f4"]
