"""What agents are called that nobody has named, and how they are found by their folders."""

from collections.abc import AsyncIterator
from pathlib import Path, PurePath

import pytest

from synapsed.errors import AmbiguousAddress, InvalidRequest, UnknownAgent
from synapsed.model.agent import FOLDER_MAX, folder_in_name, validate_name
from tests.support.world import World


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    await world.daemon()
    yield world
    await world.close()


def folder(root: Path, name: str) -> str:
    path = root / name
    path.mkdir(parents=True)
    return str(path)


@pytest.mark.parametrize(
    ("cwd", "named"),
    [
        ("/src/api", "api"),
        ("/src/my project (2)", "my-project-2"),
        ("/src/.hidden", "hidden"),
        ("/src/日本語", None),
        ("/src/日本語-api", "api"),
        ("/src/8101", None),
        ("/src/" + "x" * 100, "x" * FOLDER_MAX),
        ("/", None),
        ("/home/ann", None),
        ("/home/ann/ann", "ann"),
    ],
)
def test_what_of_a_folder_is_in_a_name(cwd: str, named: str | None) -> None:
    found = folder_in_name(PurePath(cwd), home=PurePath("/home/ann"))
    assert found == named
    if found is not None:
        assert validate_name(f"claude-{found}")


@pytest.mark.parametrize(
    "name", ["synapse-system", "Synapse-System", "unknown", "Person", "synapse-claude-8100", "SYNAPSE-my-tool-1"]
)
def test_no_agent_is_called_as_a_sender_that_it_is_not(name: str) -> None:
    with pytest.raises(InvalidRequest, match="seem to come from it"):
        validate_name(name)


@pytest.mark.parametrize("name", ["synapse-dev", "system", "unknown-2", "persona", "synapse-system-2x"])
def test_names_that_only_begin_alike_are_free(name: str) -> None:
    assert validate_name(name) == name


async def test_the_first_has_the_profiles_name_and_others_their_folders(world: World, tmp_path: Path) -> None:
    api, web = folder(tmp_path, "src/api"), folder(tmp_path, "src/web")
    names = [(await world.start(cwd=cwd)).name for cwd in (web, api, api)]
    assert names == ["fake", "fake-api", "fake-api-2"]


async def test_an_agent_is_found_by_its_folder(world: World, tmp_path: Path) -> None:
    resolve = world.manager.directory.resolve
    first = await world.start(cwd=folder(tmp_path, "src/api"))
    assert resolve("api") == resolve("@api") == first.id
    with pytest.raises(UnknownAgent):
        resolve("api", folders=False)
    named = await world.start(cwd=folder(tmp_path, "src/web"), name="api")
    assert resolve("api") == named.id, "a name counts for more than a folder"
    third = await world.start(cwd=str(tmp_path / "src" / "web"))
    with pytest.raises(AmbiguousAddress) as raised:
        resolve("web")
    assert raised.value.details["candidates"] == ["api", third.name]
    await world.manager.stop(named.id)
    assert resolve("web") == third.id, "the one that runs"
