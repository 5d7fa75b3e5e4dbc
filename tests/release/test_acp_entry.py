"""The entry for the registry of ACP agents says what this version is, and starts what there is."""

import json
import re
from pathlib import Path

from synapsectl.parsing import parse
from synapsed import __version__

ENTRY = Path("packaging/acp/synapsed")


def test_the_entry_is_of_this_version_and_its_command_is_a_verb() -> None:
    entry = json.loads((ENTRY / "agent.json").read_text())
    assert {"id", "name", "version", "description", "distribution"} <= entry.keys()
    assert re.fullmatch(r"[a-z][a-z0-9-]*", entry["id"])
    assert entry["id"] == ENTRY.name
    assert entry["version"] == __version__
    started = entry["distribution"]["uvx"]
    assert (started["package"], started["cmd"]) == (f"synapsed=={__version__}", "synapsectl")
    assert callable(parse(started["args"])[1])


def test_the_icon_is_as_large_as_the_registry_wants_it() -> None:
    icon = (ENTRY / "icon.svg").read_text()
    assert 'width="16" height="16"' in icon
    assert "currentColor" in icon
