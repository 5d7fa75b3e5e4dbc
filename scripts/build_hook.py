"""What hatchling calls for a wheel: it adds the manual page, which is made of the verbs' own help.

Nothing but the standard library is there when pip builds: the tool's parser needs no more."""

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = "share/man/man1/synapsectl.1"
"""Where man looks beside a `bin` of its PATH."""


class ManualHook(BuildHookInterface[Any]):
    """Makes the page for the time of one build."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, self.root)
        from synapsectl.manual import page

        self._folder = tempfile.TemporaryDirectory(prefix="synapsed-manual-")
        path = Path(self._folder.name) / "synapsectl.1"
        path.write_text(page(), encoding="utf-8")
        build_data["shared_data"][str(path)] = PAGE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._folder.cleanup()
