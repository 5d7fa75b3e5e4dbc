"""The part that docs/parts.md writes, word for word."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from synapsed.kernel import Face, Kernel, open_parts
from synapsed.model.events import AgentReported
from synapsed.parts.config import config_with
from tests.fakes.clock import until
from tests.parts.history.test_history import said
from tests.support.kernels import kernel_of
from tests.support.world import World

PAGE = Path(__file__).parents[2] / "docs" / "parts.md"


@pytest.fixture
def face(monkeypatch: pytest.MonkeyPatch) -> Face:
    """The example's, installed under its names."""
    blocks = re.findall(r"^   ```python\n(.*?)^   ```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    made = []
    for name, block in zip(("face", "following"), blocks, strict=True):
        module = ModuleType(f"synapsed.parts.greetings.{name}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(re.sub(r"^   ", "", block, flags=re.MULTILINE), module.__dict__)
        made.append(module)
    found: Face = made[0].FACE
    return found


def kernel_for(world: World, face: Face, **said: object) -> Kernel:
    config = config_with([face]).model_validate(said)
    clock, paths = world.clock, world.paths
    return kernel_of(control=world.manager, store=world.store, clock=clock, timers=clock, config=config, paths=paths)


async def test_it_greets_each_agent(world: World, face: Face) -> None:
    async with open_parts([face], kernel_for(world, face, greetings={"words": "good morning"})) as parts:
        assert parts.problems == {}
        parts.started()
        await world.start()
        await until(lambda: bool(world.told(AgentReported)))
    (told,) = world.told(AgentReported)
    assert (told.kind, told.message) == ("greeting", "good morning")


async def test_one_that_cannot_be_opened_is_left_out(world: World, face: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Kernel) -> None:
        raise OSError("no such place")

    monkeypatch.setattr(sys.modules[face.opens], "opened", broken)
    async with open_parts([face], kernel_for(world, face)) as parts:
        assert parts.problems == {"greetings": "OSError: no such place"}
        parts.started()


async def test_a_fault_of_one_is_no_other_ones(world: World, face: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Face(name="other", opens=face.opens)
    async with open_parts([face, other], kernel_for(world, face)) as parts:
        running = parts._running["greetings"]
        for name in ("started", "reconfigured", "stopping"):
            monkeypatch.setattr(running, name, lambda: 1 / 0)
        parts.started()
        parts.reconfigured()
        await world.start()
        await until(lambda: bool(world.told(AgentReported)))
    assert len(world.told(AgentReported)) == 1


async def test_the_one_that_counts(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer once: another one goes on from what is durable."""
    shown = re.compile(r"^```python\n# synapsed/parts/word_count/([\w/]+)\.py.*?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    blocks = dict(shown.findall(PAGE.read_text()))
    assert set(blocks) == {"counting", "face", "routes", "ctl/verbs", "ctl/word_count"}
    monkeypatch.setitem(sys.modules, package := "synapsed.parts.word_count", ModuleType(package))
    made = {}
    for name in ("counting", "face", "routes"):
        made[name] = module = ModuleType(f"{package}.{name}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(blocks[name], module.__dict__)
    for name in ("ctl/verbs", "ctl/word_count"):
        compile(blocks[name], name, "exec")
    face = made["face"].FACE
    words = []
    for answer in ("one two", "three"):
        async with open_parts([face], kernel_for(world, face)) as parts:
            assert parts.problems == {}
            parts.started()
            counter = parts.provided(made["counting"].WordCounter)
            task = await said(world.store, "hello", answer)
            await counter.reached(world.store.events.last_id)
            words.append(counter.words[task.agent_id])
    assert words == [2, 3]
