"""The kernel that a part is given, in a test."""

from typing import Any
from zoneinfo import ZoneInfo

from synapsed.documents.writing import Texts
from synapsed.kernel import Kernel
from synapsed.model.figures import FAST_S, DaemonFigures, Histogram
from synapsed.model.trace import Sampling
from tests.support.disk import Disk


def kernel_of(*, alerts: list[str] | None = None, **given: Any) -> Kernel:
    """Returns one of what is `given`; it says that nothing was measured. `alerts` are what it was told and is so."""
    told = [] if alerts is None else alerts
    figures = DaemonFigures(version="1.2.3", store=Disk(), lag=Histogram(FAST_S), agents=list, streams=lambda: 0)
    defaults = {
        "figures": figures,
        "sampling": Sampling(),
        "zone": lambda: ZoneInfo("UTC"),
        "environ": {},
        "outgoing": None,
        "texts": Texts(),
        "alert": told.append,
        "settle": told.remove,
    }
    return Kernel(**{**defaults, **given})
