"""A folder with a module for each name of the standard library's, of ours and of what we take from others: whichever of
them is imported says so, and which process has done it."""

import importlib.metadata
import sys
from collections.abc import Iterable
from pathlib import Path

OURS = ("synapsectl", "synapsed", "sitecustomize", "usercustomize")


class Shadows:
    """`folder` has them, or only `names`; `imported` tells which were."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.folder = folder
        self._told = folder.parent / "shadows-imported"
        folder.mkdir()
        lines = (
            f"with open({str(self._told)!r}, 'a') as told:",
            "    told.write(__name__ + ' by ' + ' '.join(__import__('sys').orig_argv) + '\\n')",
        )
        for name in names or _names():
            (folder / f"{name}.py").write_text("\n".join(lines))
        for name in () if names else ("synapsectl", "synapsed"):
            (folder / name).mkdir()
            for module in ("__init__", "__main__", "cli"):
                (folder / name / f"{module}.py").write_text("\n".join(lines))

    def imported(self) -> list[str]:
        return self._told.read_text().splitlines() if self._told.exists() else []


def _names() -> Iterable[str]:
    """Names of modules that something of ours might import."""
    others = importlib.metadata.packages_distributions()
    return sorted({*sys.stdlib_module_names, *others, *OURS})
