"""The kernel that a part is given, in a test."""

from typing import Any
from zoneinfo import ZoneInfo

from synapsed.documents.writing import Texts
from synapsed.kernel import Kernel
from synapsed.model.figures import FAST_S, DaemonFigures, Histogram
from synapsed.model.trace import Sampling
from tests.support.disk import Disk


def kernel_of(**given: Any) -> Kernel:
    """Returns one of what is `given`; it says that nothing was measured, and takes alerts without a word."""
    figures = DaemonFigures(version="1.2.3", store=Disk(), lag=Histogram(FAST_S), agents=list, streams=lambda: 0)
    return Kernel(
        **{
            "figures": figures,
            "sampling": Sampling(),
            "zone": lambda: ZoneInfo("UTC"),
            "alert": lambda _: None,
            "environ": {},
            "outgoing": None,
            "texts": Texts(),
            **given,
        }
    )
