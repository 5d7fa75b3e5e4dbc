"""The time zone of this machine, as its clocks show it."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from zoneinfo import ZoneInfo

import structlog

LOCALTIME = Path("/etc/localtime")
_DATABASE = "zoneinfo/"
_UTC = ZoneInfo("UTC")

log = structlog.stdlib.get_logger("synapsed.time_zone")


class LocalZone:
    """Returns, when called, the zone: that of `TZ`, else that of `/etc/localtime`, which is checked again at each call,
    because people travel; UTC if there is neither, or it is not understood."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._seen: tuple[object, ...] | None = None
        self._zone = _UTC
        name = environ.get("TZ", "").removeprefix(":")
        self._fixed = _read(lambda: ZoneInfo(name), name) if name else None

    def __call__(self) -> ZoneInfo:
        if self._fixed is not None:
            return self._fixed
        try:
            status = LOCALTIME.stat()
        except OSError:
            return _UTC
        seen = (status.st_dev, status.st_ino, status.st_mtime_ns)
        if seen != self._seen:
            self._seen = seen
            self._zone = _read(self._of_file, str(LOCALTIME))
        return self._zone

    def _of_file(self) -> ZoneInfo:
        name = str(LOCALTIME.resolve()).partition(_DATABASE)[2]
        with LOCALTIME.open("rb") as file:
            return ZoneInfo.from_file(file, key=name or "local")


def _read(read: Callable[[], ZoneInfo], where: str) -> ZoneInfo:
    try:
        return read()
    except (OSError, ValueError, KeyError) as error:  # ZoneInfoNotFoundError is a KeyError
        log.error("the time zone is not understood: times go by UTC", zone=where, error=str(error))  # noqa: TRY400
        return _UTC
