"""Keeps the bundles that were taken, in the state directory, and which of them counts (is in use), and which counted
before.

::

    state/profiles/lock                       held while the next line changes
    state/profiles/counts.json                which bundle counts (`Counts`): the only file that is replaced
    state/profiles/bundles/DIGEST/…           one bundle: as it came (`bundle`), `about.json`, and its files

A bundle is put there complete (a folder that is renamed once all is in it), and never changed. So after a kill at any
time `counts.json` names the old bundle or the new one. Two processes that change it do so one after the other, and each
states which bundle it found. All of this blocks.
"""

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from synapsed.errors import Busy, StoreError
from synapsed.parts.profile_tools.bundles.bundle import Bundle
from synapsed.shared.files import write_whole

FOLDER: Final = "profiles"
SHIPPED: Final = ""
"""Value in place of a digest while the profiles that came with synapsed are in use."""
KEPT: Final = 4
"""Number of bundles before the present one that are kept."""
LOCK_S: Final = 5.0
STALE_S: Final = 86_400.0
"""Seconds after which a bundle that was shown, and not taken, is removed."""
COUNTS_MAX: Final = 1 << 20


class Counts(BaseModel):
    """The bundle in use (`current`), and those that were in use before, the last one first. `unproved`: profiles that
    the bundle changes, and with which no agent has come up since. `aside`: a profile of the bundle that is not in use
    during a trial (`trial`); that of the bundle before, or the shipped one, takes its place."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    current: str = SHIPPED
    before: list[str] = []
    unproved: list[str] = []
    aside: str = ""

    @property
    def kept(self) -> set[str]:
        return {self.current, *self.before} - {SHIPPED}


class BundleAbout(BaseModel):
    """The facts that are saved about a bundle besides its content. Times are seconds since 1970."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    signer: str
    key: str
    made: float
    made_with: str
    came: float
    source: str
    profiles: list[str]


class Shelf:
    def __init__(self, state: Path) -> None:
        self.folder = state / FOLDER
        self._counts = self.folder / "counts.json"

    def counts(self) -> Counts:
        """Returns the present counts; without a file, or with one that cannot be read, the shipped profiles."""
        try:
            with self._counts.open("rb") as file:
                return Counts.model_validate_json(file.read(COUNTS_MAX))
        except (OSError, ValidationError):
            return Counts()

    def place(self, digest: str) -> Path:
        return self.folder / "bundles" / digest

    def about(self, digest: str) -> BundleAbout | None:
        """Returns the facts about a bundle; None if it is missing, or damaged."""
        try:
            return BundleAbout.model_validate_json((self.place(digest) / "about.json").read_bytes())
        except (OSError, ValidationError):
            return None

    def put(self, bundle: Bundle, content: bytes, *, source: str, now: float) -> Path:
        """Stores a bundle, which is not in use yet, and returns its folder. Raises StoreError."""
        place = self.place(bundle.digest)
        about = BundleAbout(
            signer=bundle.signer.name,
            key=bundle.signer.text,
            made=bundle.manifest.made,
            made_with=bundle.manifest.made_with,
            came=now,
            source=source,
            profiles=[profile.name for profile in bundle.manifest.profiles],
        )
        files = {**bundle.files, "bundle": content, "about.json": about.model_dump_json().encode()}
        fresh = place.with_name(f".new-{os.getpid()}-{bundle.digest[:16]}")
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            place.parent.mkdir(mode=0o700, exist_ok=True)
            if self.about(bundle.digest) is not None:
                return place
            shutil.rmtree(place, ignore_errors=True)
            shutil.rmtree(fresh, ignore_errors=True)
            for name, file in files.items():
                (fresh / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_whole(fresh / name, file, durable=not name.startswith("recordings/"))
            with contextlib.suppress(OSError):  # another process has put the same bundle there
                fresh.replace(place)
        except OSError as error:
            raise StoreError(f"{place} cannot be written: {error.strerror}", file=str(place)) from error
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        return place

    def change(self, decide: Callable[[Counts], Counts | None]) -> Counts:
        """Makes the result of `decide` durable, and returns it; None changes nothing. Raises Busy, StoreError, and what
        `decide` raises."""
        with self._locked():
            old = self.counts()
            new = decide(old)
            if new is None:
                return old
            try:
                write_whole(self._counts, new.model_dump_json(indent=1).encode())
            except OSError as error:
                raise StoreError(f"{self._counts} cannot be written: {error.strerror}") from error
            self._tidy(new)
            return new

    def remove(self, digest: str) -> None:
        """Removes a bundle unless it counts, or counted before."""
        with self._locked():
            if digest not in self.counts().kept:
                shutil.rmtree(self.place(digest), ignore_errors=True)

    def _tidy(self, counts: Counts) -> None:
        for place in self.place(SHIPPED).iterdir() if self.place(SHIPPED).is_dir() else ():
            with contextlib.suppress(OSError):
                if place.name not in counts.kept and time.time() - place.stat().st_mtime > STALE_S:
                    shutil.rmtree(place, ignore_errors=True)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"{self.folder} cannot be written: {error.strerror}") from error
        try:
            until = time.monotonic() + LOCK_S
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise Busy("another update of the profiles is under way: try again") from None
                    time.sleep(0.02)
            yield
        finally:
            os.close(handle)


def after_taking(counts: Counts, digest: str, unproved: list[str]) -> Counts:
    """Returns the counts after that bundle is taken."""
    others = [old for old in (counts.current, *counts.before) if old != digest]
    return Counts(current=digest, before=others[:KEPT], unproved=sorted(unproved))


def after_rollback(counts: Counts) -> Counts:
    """Returns the counts after a return to the bundle before."""
    older, *others = counts.before or [SHIPPED]
    return Counts(current=older, before=others)
