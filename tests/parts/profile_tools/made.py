"""Bundles for tests: keys, and the simplest of profiles."""

from collections.abc import Mapping
from pathlib import Path

from synapsed import __version__
from synapsed.parts.profile_tools.bundles.bundle import HeldProfile, Manifest, seal
from synapsed.parts.profile_tools.bundles.keys import make_key, read_key

PROFILE = """
command = "sh"
model = true
verified = "2.0"
"""


class Signer:
    """Somebody with a key."""

    def __init__(self, folder: Path, name: str = "tests") -> None:
        self.file = folder / f"{name}.key"
        self.text = make_key(self.file)
        self.trusted = [f"{self.text} {name}@example"]
        self.key = read_key(self.file)

    def bundle(self, files: Mapping[str, bytes | str], **manifest: object) -> bytes:
        """A bundle of these files, whatever is in them."""
        content = {name: file.encode() if isinstance(file, str) else file for name, file in files.items()}
        held = [HeldProfile(name=Path(name).stem) for name in content if name.startswith("profiles/")]
        told = {"made": 1e9, "made_with": __version__, "needs": __version__, "profiles": held, **manifest}
        return seal(Manifest.model_validate(told), content, self.key)
