"""Parcels on this host's disk: outgoing ones, until no host needs them, and incoming ones. A parcel is a file, or a
message too large for one message of the broker, and is sent in encrypted chunks.

::

    files/out/<id>          content of a file, or sealed (encrypted) chunks of a message
    files/out/<id>.json     its description and receivers: it exists once this file does
    files/in/<src>/<id>     complete content from a host
    files/in/<src>/<id>.part  the chunks that have come so far, in order

All have mode 0600. A message is stored encrypted, like secrets in the database; a file is stored as it is, as in an
agent's inbox. Every function here blocks on the disk: call it in a thread.
"""

import contextlib
import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Self

from synapsed.errors import InvalidRequest, StoreError, TooLarge
from synapsed.shared.files import write_private
from synapsed_fleet.names import HOST
from synapsed_fleet.parcel import CHUNK, SIZE_MAX, TAG, Cipher, ParcelRef, is_id

FREE_MIN: Final = 1 << 30
"""Bytes of the disk that incoming content, and files to be sent, leave free."""
HASHED_AT_ONCE: Final = 1 << 20


@dataclass(slots=True)
class Leg:
    """One receiver of a parcel, and what it has so far."""

    dst: str
    """The host, or the class of work."""
    row: str
    """Id of the outbox row whose message refers to the parcel."""
    n: int
    """Version of that row (`OutRow.n`): the parcel is no longer needed for it once the row is closed or has another
    version."""
    have: int = 0
    """Number of chunks that the receiver has: the first ones."""
    published: int = 0
    """Number of chunks that were published at the broker: the first ones."""


@dataclass(slots=True)
class Parcel:
    """A parcel to be sent; `written` is its description on the disk."""

    id: str
    size: int
    sha256: str
    sealed: bool
    """True if the content is stored encrypted, as it is sent."""
    at: float
    """Time since which it is here, in seconds since the epoch."""
    name: str = ""
    sent: bool = False
    """True once a message has referred to it."""
    legs: list[Leg] = field(default_factory=list)

    def written(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def read(cls, raw: bytes) -> Self:
        """Reads a description. Raises ValueError."""
        try:
            fields = json.loads(raw)
            legs = [Leg(**leg) for leg in fields.pop("legs")]
            made = cls(**fields, legs=legs)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(str(error)) from error
        if not is_id(made.id):
            raise ValueError("it has no id")
        return made


class OutSpool:
    """The directory `files/out`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self) -> list[Parcel]:
        """Returns the kept parcels; removes all other files, which an interrupted daemon has left."""
        found = []
        for path in sorted(self._folder.glob("*.json")):
            with contextlib.suppress(OSError, ValueError):
                parcel = Parcel.read(path.read_bytes())
                if self._content(parcel.id).is_file() and path.stem == parcel.id:
                    found.append(parcel)
        whole = {parcel.id for parcel in found}
        for path in self._folder.glob("*"):
            if path.name.removesuffix(".json") not in whole:
                path.unlink(missing_ok=True)
        return found

    def keep(self, parcel: Parcel) -> None:
        """Writes the parcel's description. Raises StoreError."""
        write_private(self._folder / f"{parcel.id}.json", parcel.written())

    def put_body(self, ref: ParcelRef, body: bytes, parcel: Parcel) -> None:
        """Saves a message's body, sealed. Raises StoreError."""
        cipher = Cipher(ref)
        sealed = b"".join(cipher.seal(n, body[n * CHUNK : (n + 1) * CHUNK]) for n in range(ref.chunks))
        write_private(self._content(parcel.id), sealed)
        self.keep(parcel)

    def chunk(self, parcel: Parcel, ref: ParcelRef, n: int) -> bytes:
        """Returns a chunk as it is sent. Raises FileNotFoundError if the content is gone, or incomplete."""
        size = CHUNK + TAG if parcel.sealed else CHUNK
        with self._content(parcel.id).open("rb") as file:
            file.seek(n * size)
            raw = file.read(size)
        wanted = min(CHUNK, parcel.size - n * CHUNK) + (TAG if parcel.sealed else 0)
        if len(raw) != wanted:
            raise FileNotFoundError(errno.ENOENT, "its content is not whole")
        return raw if parcel.sealed else Cipher(ref).seal(n, raw)

    def is_whole(self, parcel: Parcel, ref: ParcelRef, n: int) -> bool:
        """Returns True if chunk `n` is unchanged; a file can be checked only as a whole."""
        try:
            if parcel.sealed:
                return Cipher(ref).open(n, self.chunk(parcel, ref, n)) is not None
            with self._content(parcel.id).open("rb") as file:
                return hash_of(file) == parcel.sha256
        except OSError:
            return False

    def drop(self, parcel_id: str) -> None:
        (self._folder / f"{parcel_id}.json").unlink(missing_ok=True)
        self._content(parcel_id).unlink(missing_ok=True)

    def upload(self) -> "Upload":
        """Begins a file that is to be sent. Raises StoreError."""
        return Upload(self._folder)

    def _content(self, parcel_id: str) -> Path:
        return self._folder / parcel_id


class Upload:
    """A file that a client gives piece by piece, to be sent; ended by `end` or `abandon`."""

    def __init__(self, folder: Path) -> None:
        self.id = secrets.token_hex(16)
        self.size = 0
        self._hash = hashlib.sha256()
        self._path = folder / self.id
        with _storing(self._path):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = _opened(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)

    def write(self, piece: bytes) -> None:
        """Appends a piece. Raises TooLarge, StoreError."""
        self.size += len(piece)
        if self.size > SIZE_MAX:
            raise TooLarge(f"a file can have at most {SIZE_MAX} bytes", limit=SIZE_MAX)
        self._hash.update(piece)
        with _storing(self._path):
            check_room(self._path.parent, len(piece))
            self._file.write(piece)

    def end(self, *, name: str, at: float) -> Parcel:
        """Completes the file and returns its parcel. Raises StoreError."""
        with _storing(self._path):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        parcel = Parcel(self.id, self.size, self._hash.hexdigest(), sealed=False, at=at, name=name)
        write_private(self._path.with_name(f"{self.id}.json"), parcel.written())
        return parcel

    def abandon(self) -> None:
        """Removes the file; what the disk refuses does not count any more."""
        with contextlib.suppress(OSError):
            self._file.close()  # writes what is left of a piece
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)


class InSpool:
    """The directory `files/in`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, src: str, parcel_id: str) -> Path:
        """Returns the path of the content once it is complete. Raises InvalidRequest for an invalid host or id."""
        if HOST.fullmatch(src) is None or not is_id(parcel_id):
            raise InvalidRequest("it is no parcel of a host", field="uri")
        return self._folder / src / parcel_id

    def coming(self, src: str, ref: ParcelRef, *, sealed: bool) -> "Coming":
        """Returns the part of the content that has come so far, to be continued. Raises StoreError."""
        return Coming(self.path(src, ref.id), ref, sealed=sealed)

    def body(self, src: str, ref: ParcelRef) -> bytes | None:
        """Returns the body of a complete message; None if it does not match its reference."""
        cipher, size = Cipher(ref), CHUNK + TAG
        try:
            sealed = self.path(src, ref.id).read_bytes()
        except OSError:
            return None
        opened = [cipher.open(n, sealed[n * size : (n + 1) * size]) for n in range(ref.chunks)]
        body = b"".join(one for one in opened if one is not None)
        return body if hashlib.sha256(body).hexdigest() == ref.sha256 else None

    def whole(self) -> list[tuple[str, str, int, float]]:
        """Returns the complete content: its host, its id, its bytes, and its time in seconds since the epoch."""
        found = []
        for path in sorted(self._folder.glob("*/*")):
            with contextlib.suppress(OSError):
                if is_id(path.name):
                    status = path.stat()
                    found.append((path.parent.name, path.name, status.st_size, status.st_mtime))
        return found

    def drop(self, src: str, parcel_id: str) -> None:
        path = self.path(src, parcel_id)
        path.unlink(missing_ok=True)
        path.with_name(f"{path.name}.part").unlink(missing_ok=True)

    def drop_part(self, src: str, parcel_id: str) -> None:
        """Removes the received part of a content; keeps complete content."""
        path = self.path(src, parcel_id)
        path.with_name(f"{path.name}.part").unlink(missing_ok=True)

    def sweep(self, before: float) -> int:
        """Removes files that were last written before that time; returns their number."""
        removed = 0
        for path in self._folder.glob("*/*"):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < before:
                    path.unlink()
                    removed += 1
        return removed


class Coming:
    """Writes the chunks of a parcel in their order; `have` of them are saved."""

    def __init__(self, path: Path, ref: ParcelRef, *, sealed: bool) -> None:
        self._ref = ref
        self._sealed = sealed
        self._whole = path
        self._part = path.with_name(f"{path.name}.part")
        self._cipher = Cipher(ref)
        self._chunk = CHUNK + TAG if sealed else CHUNK
        with _storing(self._part):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = _opened(self._part, os.O_CREAT | os.O_RDWR)
            there = os.fstat(self._file.fileno()).st_size
            full = ref.size + (ref.chunks * TAG if sealed else 0)
            # The last chunk may be incomplete: only what was written before the last sync of the disk is certain.
            self.have = ref.chunks if there == full else min(there // self._chunk, ref.chunks - 1)
            self._file.truncate(there if there == full else self.have * self._chunk)
            self._file.seek(0, os.SEEK_END)

    def add(self, sealed: list[bytes]) -> int:
        """Writes the next chunks, up to the first wrong one; returns the number written. Raises StoreError."""
        done = 0
        with _storing(self._part):
            check_room(self._part.parent, sum(map(len, sealed)))
            for raw in sealed:
                content = self._cipher.open(self.have, raw)
                if content is None:
                    break
                self._file.write(raw if self._sealed else content)
                self.have += 1
                done += 1
            self._file.flush()
        return done

    def end(self) -> bool:
        """Moves complete content to its final path. Returns False if it does not match its reference; it is then
        fetched again from the beginning. Raises StoreError."""
        with _storing(self._part):
            os.fsync(self._file.fileno())
            if not self._sealed and self._hash() != self._ref.sha256:  # a message is checked when it is read
                self._file.truncate(0)
                self._file.seek(0)
                self.have = 0
                return False
            self._part.replace(self._whole)
        return True

    def close(self) -> None:
        self._file.close()

    def _hash(self) -> str:
        self._file.seek(0)
        return hash_of(self._file)


def hash_of(file: IO[Any]) -> str:
    """Returns the SHA-256 of the rest of a file."""
    made = hashlib.sha256()
    while piece := file.read(HASHED_AT_ONCE):
        made.update(piece)
    return made.hexdigest()


def check_room(folder: Path, more: int) -> None:
    """Raises OSError if `more` bytes would leave too little of the disk free."""
    if shutil.disk_usage(folder).free - more < FREE_MIN:
        raise OSError(errno.ENOSPC, f"less than {FREE_MIN >> 30} GiB of the disk would be left free")


def _opened(path: Path, flags: int) -> IO[Any]:
    return os.fdopen(os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "r+b" if flags & os.O_RDWR else "wb")


@contextlib.contextmanager
def _storing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}", file=str(path), reason="disk") from error
