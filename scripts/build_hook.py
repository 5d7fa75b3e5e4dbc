"""What hatchling calls for a wheel and an sdist: it adds the manual page, which is made of the verbs' own help, the
commit of which that is, and the numbers by which a version may be exchanged for another.

Nothing but the standard library is there when pip builds: the tool's parser needs no more."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = "share/man/man1/synapsectl.1"
"""Where man looks beside a `bin` of its PATH."""


class ManualHook(BuildHookInterface[Any]):
    """Makes them for the time of one build."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, self.root)
        from synapsed.process.installed import COMMIT_FILE, VERSIONS_FILE, commit

        self._folder = tempfile.TemporaryDirectory(prefix="synapsed-build-")
        folder = Path(self._folder.name)
        place = f"synapsed/{COMMIT_FILE}"
        if not (Path(self.root) / place).exists() and (found := commit()):  # an sdist has it
            (folder / COMMIT_FILE).write_text(f"{found}\n", encoding="ascii")
            build_data["force_include"][str(folder / COMMIT_FILE)] = place
        if self.target_name == "wheel":
            from synapsectl.manual import page
            from synapsectl.verbs import verbs, with_part
            from synapsed.cli import versions

            sys.path.insert(0, str(Path(self.root, "packages", "synapsed-fleet")))
            known = with_part(verbs(), "synapsed_fleet.ctl")  # whatever is installed where this is built
            (folder / "synapsectl.1").write_text(page(known), encoding="utf-8")
            told = {key: value for key, value in versions().items() if key != "commit"}
            (folder / VERSIONS_FILE).write_text(f"{json.dumps(told)}\n", encoding="ascii")
            build_data["force_include"][str(folder / VERSIONS_FILE)] = f"synapsed/{VERSIONS_FILE}"
            build_data["shared_data"][str(folder / "synapsectl.1")] = PAGE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._folder.cleanup()
