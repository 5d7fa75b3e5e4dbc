"""Accounts that do not work: what failed is no failure of the messages behind it, which wait."""

import asyncio
from pathlib import Path

import pytest

from synapsed.model.events import AttentionChanged
from synapsed.model.link import LinkTurnFailed
from synapsed.model.task import Task, TaskState
from synapsed.parts.usage_limits.accounts import dialled, endpoint_of, is_reached, marks_of
from synapsed.parts.usage_limits.holding import LOOK_AT_ACCOUNT_S
from synapsed.parts.usage_limits.limit_notices import find_trouble
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.setting_spec import AccountSpec
from tests.fakes.clock import until
from tests.fakes.link import FakeLink
from tests.parts.usage_limits.conftest import AGENT_MODEL
from tests.support.world import World

PROFILE = """
command = "sh"
model = true
ports = [8140, 8149]
[account]
apart = ["HOME", "KEY"]
files = ["$CREDENTIALS"]
failures = ['no such model']
unreachable = ['cannot connect to (?P<url>\\S+)']
remedy = "sign in at its terminal"
"""

SPEC = AccountSpec.model_validate(
    {"failures": ["no such model"], "unreachable": ["cannot connect(?: to (?P<url>.+))?"]}
)


async def agents(world: World, *envs: dict[str, str], profile: str = PROFILE) -> list[tuple[str, FakeLink]]:
    """An agent for each of these environments."""
    (world.paths.config.parent / "profiles" / "signed.toml").write_text(profile)
    world.library.reload()
    if not world.managers:
        await world.daemon()
    return [((await world.start("signed", extra_env=env)).id, world.link) for env in envs]


async def fails(world: World, link: FakeLink, count: int = 1, words: str = "401", code: str = "AUTH_REQUIRED") -> None:
    await world.delivered(count, link)
    link.submit()
    link.emit(LinkTurnFailed(link.deliveries[-1].task_id, code, words, "fake"))
    link.ready()


def held(world: World, agent: str) -> tuple[str | None, int]:
    view = world.manager.directory.view(agent)
    return view.held, view.queue


def rows(world: World) -> list[tuple[str, str]]:
    return [(each.kind, each.state) for each in world.told(AttentionChanged)]


async def ends_well(world: World, link: FakeLink, task: Task) -> None:
    await until(lambda: bool(link.deliveries) and link.deliveries[-1].task_id == task.id, "given")
    link.submit()
    link.end("done")
    await world.task_is(task.id, TaskState.COMPLETED)


async def test_who_met_it_fails_and_all_of_that_account_wait_until_its_files_change(
    quiet_world: World, tmp_path: Path
) -> None:
    """One row in the inbox; another account's agent works on; one kill of the daemon changes nothing."""
    world, mine = quiet_world, {"KEY": "one", "CREDENTIALS": str(tmp_path / "auth.json")}
    (a, link_a), (b, link_b), (c, link_c) = await agents(world, mine, mine, {**mine, "KEY": "two"})
    first, second = await world.send(a, "first"), await world.send(a, "second")
    await fails(world, link_a)
    failed = await world.task_is(first.id, TaskState.FAILED)
    assert failed.error is not None
    assert (failed.error.code, failed.error.details) == ("AUTH_REQUIRED", {"held": "account"})
    third = await world.send(b, "third")
    await until(lambda: held(world, a) == held(world, b) == ("account", 1), "all wait")
    await ends_well(world, link_c, await world.send(c, "another account"))
    world.clock.advance(LOOK_AT_ACCOUNT_S)
    await asyncio.sleep(0)
    assert (len(link_a.deliveries), len(link_b.deliveries)) == (1, 0)
    assert rows(world) == [("account", "opened")]
    assert "sign in at its terminal" in world.told(AttentionChanged)[0].question
    await world.manager.close(keep_agents=True)
    await world.daemon()
    for link in world.factory.links:
        link.ready()
    await until(lambda: held(world, a) == held(world, b) == ("account", 1), "all wait still")
    (tmp_path / "auth.json").write_text("signed in")

    def given() -> bool:
        world.clock.advance(LOOK_AT_ACCOUNT_S)
        return {second.id, third.id} <= {each.task_id for link in world.factory.links for each in link.deliveries}

    await until(given, "they go on")
    assert rows(world) == [("account", "opened"), ("account", "gone")]


async def test_a_person_has_it_tried_again_from_any_agent_of_the_account(quiet_world: World) -> None:
    world = quiet_world
    (a, link_a), (b, link_b) = await agents(world, {"KEY": "one"}, {"KEY": "one"})
    await world.send(a, "first")
    second = await world.send(a, "second")
    await fails(world, link_a, words="no such model: gone", code="MODEL_ERROR")
    await until(lambda: held(world, b)[0] == "account", "held")
    third = await world.send(b, "third")
    assert await world.manager.terminals.interrupt(b)
    await ends_well(world, link_a, second)
    await ends_well(world, link_b, third)
    assert rows(world) == [("account", "opened"), ("account", "gone")]


async def test_what_could_not_be_reached_is_tried_when_it_can_be(quiet_world: World) -> None:
    world, served = quiet_world, await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    port = served.sockets[0].getsockname()[1]
    served.close()
    await served.wait_closed()
    ((a, link),) = await agents(world, {"KEY": "one"})
    await world.send(a, "first")
    second = await world.send(a, "second")
    await fails(world, link, words=f"cannot connect to http://127.0.0.1:{port}/v1", code="MODEL_ERROR")
    await until(lambda: held(world, a) == ("account", 1), "held")
    again = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", port)

    def given() -> bool:
        world.clock.advance(LOOK_AT_ACCOUNT_S)
        return len(link.deliveries) == 2

    await until(given, "it goes on")
    again.close()
    await ends_well(world, link, second)


async def test_the_trouble_of_an_agent_that_is_removed_holds_nobody(quiet_world: World) -> None:
    world = quiet_world
    (a, link_a), (b, link_b) = await agents(world, {"KEY": "one"}, {"KEY": "one"})
    await world.send(a, "first")
    await fails(world, link_a)
    await until(lambda: held(world, b)[0] == "account", "held")
    second = await world.send(b, "second")
    await world.manager.stop(a, remove=True)
    await ends_well(world, link_b, second)


@pytest.mark.parametrize(
    ("code", "words", "found"),
    [
        ("AUTH_REQUIRED", "401", (True, None)),
        ("MODEL_ERROR", "API: no such\nmodel x", (True, None)),
        ("MODEL_ERROR", "cannot connect to http://h:1", (True, "http://h:1")),
        ("MODEL_ERROR", "cannot connect", (True, "")),
        ("MODEL_ERROR", "500", (False, None)),
        ("CONTEXT_FULL", "too long", (False, None)),
    ],
)
def test_what_is_the_accounts(code: str, words: str, found: tuple[bool, str | None]) -> None:
    trouble = find_trouble(SPEC, code, words)
    assert (trouble is not None, trouble.reach if trouble is not None else None) == found


@pytest.mark.parametrize(
    ("url", "env", "place"),
    [
        ("http://h/v1", {}, ("h", 80)),
        ("https://h/v1", {}, ("h", 443)),
        ("https://h:8443", {"HTTPS_PROXY": "http://user:word@proxy:3128"}, ("proxy", 3128)),
        ("http://127.0.0.1:9", {"HTTPS_PROXY": "http://proxy:3128"}, ("127.0.0.1", 9)),
        ("h:77", {}, ("h", 77)),
        ("http://h:99999", {}, None),
        ("", {}, None),
    ],
)
def test_where_it_is_looked_for(url: str, env: dict[str, str], place: tuple[str, int] | None) -> None:
    assert dialled(url, env) == place


async def test_nothing_is_reached_where_nothing_is() -> None:
    assert not await is_reached("", {})


def test_what_names_a_variable_that_is_not_set_is_passed_over(tmp_path: Path) -> None:
    spec = AccountSpec(files=["$DIR/auth", "$NOT/auth"], endpoints=["$URL", "https://default"])
    before = marks_of(spec, {"DIR": str(tmp_path)})
    (tmp_path / "auth").write_text("x")
    assert marks_of(spec, {"DIR": str(tmp_path)}) != before == marks_of(spec, {})
    assert endpoint_of(spec, "", {}) == "https://default"
    assert endpoint_of(spec, "", {"URL": "http://own"}) == "http://own"
    assert endpoint_of(spec, "http://told", {}) == "http://told"


async def test_a_reload_during_trouble_leaves_nothing_behind_that_holds_messages(
    quiet_world: World, tmp_path: Path
) -> None:
    world, auth = quiet_world, tmp_path / "auth.json"
    (world.paths.config.parent / "profiles" / "signed.toml").write_text(PROFILE)
    world.library.reload()
    text = "".join(
        f'[agents.{name}]\nprofile = "signed"\nautostart = true\nenv = {{KEY = "one", CREDENTIALS = "{auth}"}}\n'
        for name in "ab"
    )
    world.paths.config.mkdir(parents=True, exist_ok=True)
    world.paths.config_file.write_text(text)
    env = {"KEY": "one", "CREDENTIALS": str(auth)}
    world.agents = {name: AGENT_MODEL(profile="signed", autostart=True, env=env) for name in "ab"}
    await world.daemon()
    ids = [next(view.id for view in world.manager.directory.agents() if view.name == name) for name in "ab"]
    for link in world.factory.links:
        link.ready()
    await until(lambda: [held(world, one)[0] for one in ids] == [None, None], "both are ready")
    await world.send(ids[0], "first")
    await fails(world, next(link for link in world.factory.links if link.deliveries))
    for one in ids:
        await world.send(one, "waits")
    await until(lambda: [held(world, one) for one in ids] == [("account", 1)] * 2, "all wait")
    world.paths.config_file.write_text(text.replace("[agents.b]", "restart = { initial = 7 }\n[agents.b]"))
    await world.manager.reload()
    for link in world.factory.links:
        link.ready()
    await until(lambda: [held(world, one) for one in ids] == [("account", 1)] * 2, "all wait still")
    auth.write_text("signed in")

    def goes_on() -> bool:
        world.clock.advance(LOOK_AT_ACCOUNT_S)
        return not {"account"} & {held(world, one)[0] for one in ids}

    await until(goes_on, "nobody is held")


UNKNOWN = PROFILE.replace('apart = ["HOME", "KEY"]\n', "")


@pytest.mark.parametrize("how", ["no apart", "no account at all"])
async def test_where_accounts_are_not_told_apart_each_agent_has_its_own(quiet_world: World, how: str) -> None:
    """One meets a 401, the other works on, also over a restart of the daemon."""
    world = quiet_world
    profile = UNKNOWN if how == "no apart" else UNKNOWN.partition("[account]")[0]
    (a, link_a), (b, link_b) = await agents(world, {"KEY": "one"}, {"KEY": "one"}, profile=profile)
    await world.send(a, "first")
    second = await world.send(a, "second")
    await fails(world, link_a)
    await until(lambda: held(world, a) == ("account", 1), "it waits")
    assert held(world, b) == (None, 0)
    await ends_well(world, link_b, await world.send(b, "works on"))
    assert held(world, a) == ("account", 1), "that says nothing of its account"
    await world.manager.close(keep_agents=True)
    await world.daemon()
    for link in world.factory.links:
        link.ready()
    await until(lambda: held(world, a) == ("account", 1), "it waits still")
    await ends_well(world, world.factory.links[-1], await world.send(b, "and on"))
    assert rows(world) == [("account", "opened")]
    assert await world.manager.terminals.interrupt(a)
    await ends_well(world, world.factory.links[-2], second)
    assert rows(world) == [("account", "opened"), ("account", "gone")]


RETRIED = "Info: Request failed due to a transient API error. Retrying..."
MEASURED = {
    "qwen": [
        ("AUTH_REQUIRED", "Internal error: 401 scripted failure 401"),
        ("MODEL_ERROR", "Internal error: 402 scripted failure 402"),
        ("MODEL_ERROR", "Internal error: 404 The model `scripted` does not exist or you do not have access to it."),
    ],
    "cline": [("AUTH_REQUIRED", "Authentication required: scripted failure 401: scripted failure 401")],
    "vibe": [
        ("AUTH_REQUIRED", "Invalid API key (from env var KEY). Please check your API key and try again."),
        ("AUTH_REQUIRED", "The scripted credential was rejected. Update the API key and retry."),
    ],
    "kimi": [("AUTH_REQUIRED", "Authentication required: 401 scripted failure 401")],
    "copilot": [
        (
            "AUTH_REQUIRED",
            f"{RETRIED}{RETRIED}Error: Authentication failed with provider at http://x/v1 (HTTP 401).\n Check",
        ),
        ("MODEL_ERROR", "Error: 402 scripted failure 402"),
        ("MODEL_ERROR", "Error: Model 'scripted' not found on provider at http://x/v1 (HTTP 404).\n  Check that"),
    ],
    "pi": [
        ("AUTH_REQUIRED", 'Error: 401: {"message":"scripted failure 401","type":"invalid_request_error","code":401}'),
        ("MODEL_ERROR", 'Error: 402: {"message":"scripted failure 402","type":"invalid_request_error","code":402}'),
        ("MODEL_ERROR", 'Error: 404: {"message":"scripted failure 404","type":"invalid_request_error","code":404}'),
    ],
}
"""What the shipped programs said of a service that refuses a key, a bill, a model, and the code that this has."""


@pytest.mark.parametrize(
    ("name", "code", "words"), [(name, *told) for name, found in MEASURED.items() for told in found]
)
def test_what_shipped_programs_say_of_their_account_is_known(name: str, code: str, words: str) -> None:
    profile = ProfileLibrary.builtin().get(name)
    assert profile.account.apart
    assert profile.account.files
    assert find_trouble(profile.account, code, words) is not None
    assert find_trouble(profile.account, "MODEL_ERROR", "Internal error: 500 the request is too large") is None


@pytest.mark.parametrize(("code", "words"), MEASURED["copilot"])
def test_an_error_that_copilot_tells_as_its_answer_is_one(code: str, words: str) -> None:
    found = [each.code for each in ProfileLibrary.builtin().get("copilot").error if each.pattern.search(words)]
    assert found == [code]
    quoted = f"It says:\n{words}"
    assert not [each for each in ProfileLibrary.builtin().get("copilot").error if each.pattern.search(quoted)]
