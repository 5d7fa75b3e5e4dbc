"""Packs the files of a bundle into one archive, tar in gzip, and unpacks it. Pure.

Files are unpacked into memory, and only names of a few forms are accepted: an archive with another name, or with
anything that is not a plain file, is refused. Sizes are checked before memory is allocated.
"""

import io
import re
import tarfile
import zlib
from collections.abc import Mapping
from typing import Final

from synapsed.errors import InvalidRequest
from synapsed.shared.regex import regex

PACKED_MAX: Final = 32 << 20
UNPACKED_MAX: Final = 128 << 20
"""Most bytes of a whole archive."""
FILES_MAX: Final = 2000
MANIFEST: Final = "manifest.json"
_PIECE = 1 << 20

_PROFILE = r"profiles/[a-z0-9][a-z0-9_-]{0,63}\.toml"
_FOLDER = r"[a-z0-9][a-z0-9_-]{0,63}-[0-9][0-9a-z.+-]{0,63}"
_RECORDING = rf"recordings/{_FOLDER}/[a-z0-9][a-z0-9_-]{{0,63}}(?:\.raw|\.json|\.expected\.json)"
_NAME = regex(f"{re.escape(MANIFEST)}|{_PROFILE}|{_RECORDING}")

SIZES: Final = ((".toml", 256 << 10), (".raw", 8 << 20), (".json", 4 << 20))
"""Most bytes of one file, by the end of its name."""


def check_name(name: str, size: int) -> None:
    """Raises InvalidRequest if a bundle cannot have such a file."""
    if _NAME.fullmatch(name) is None:
        raise InvalidRequest(f"no file of a bundle is called {name[:100]!r}")
    limit = next(limit for end, limit in SIZES if name.endswith(end))
    if size > limit:
        raise InvalidRequest(f"{name} has {size} bytes; {limit} are allowed")


def pack(files: Mapping[str, bytes]) -> bytes:
    """Returns the archive: the same files always give the same bytes. Raises InvalidRequest."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in sorted(files.items()):
            check_name(name, len(content))
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    if len(out.getvalue()) > UNPACKED_MAX or len(files) > FILES_MAX:
        raise InvalidRequest(f"a bundle has at most {FILES_MAX} files of {UNPACKED_MAX >> 20} MiB together")
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    return deflate.compress(out.getvalue()) + deflate.flush()


def unpack(packed: bytes) -> dict[str, bytes]:
    """Returns the files in the archive. Raises InvalidRequest."""
    try:
        plain = io.BytesIO(_inflated(packed))
        with tarfile.open(fileobj=plain, mode="r:") as archive:
            return _files(archive)
    except (tarfile.TarError, zlib.error, EOFError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidRequest(f"the archive cannot be read ({type(error).__name__})") from None


def _files(archive: tarfile.TarFile) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for member in archive:
        if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.pax_headers:
            raise InvalidRequest(f"{member.name[:100]!r} is no plain file")
        check_name(member.name, member.size)
        if member.name in files or len(files) >= FILES_MAX:
            raise InvalidRequest(f"{member.name!r} is there twice, or the archive has more than {FILES_MAX} files")
        opened = archive.extractfile(member)
        content = opened.read(member.size) if opened is not None else b""
        if len(content) != member.size:
            raise InvalidRequest(f"{member.name!r} is cut off")
        files[member.name] = content
    return files


def _inflated(packed: bytes) -> bytes:
    if len(packed) > PACKED_MAX:
        raise InvalidRequest(f"the archive has more than {PACKED_MAX >> 20} MiB")
    inflate, found, rest = zlib.decompressobj(31), bytearray(), packed
    while not inflate.eof:
        piece = inflate.decompress(rest, _PIECE)
        rest = inflate.unconsumed_tail
        found += piece
        if len(found) > UNPACKED_MAX:
            raise InvalidRequest(f"the archive has more than {UNPACKED_MAX >> 20} MiB unpacked")
        if not piece and not rest and not inflate.eof:
            raise InvalidRequest("the archive is cut off")
    if inflate.unused_data:
        raise InvalidRequest("there is more data after the archive's end")
    return bytes(found)
