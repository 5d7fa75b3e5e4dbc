"""The kernel that a part is given, in a test."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

from synapsed.clock import Clock
from synapsed.documents.writing import Texts
from synapsed.kernel import Kernel, Parts
from synapsed.model.figures import FAST_S, DaemonFigures, Histogram
from synapsed.model.trace import Sampling
from synapsed.outgoing import PushPolicy
from synapsed.outgoing.poster import HttpPoster
from synapsed.outgoing.posting import Posting
from synapsed.outgoing.secrets import SecretPlaces
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


def no_parts() -> Parts:
    return Parts([], cast("Kernel", None), AsyncExitStack())


def posting_kernel(
    poster: Callable[[], HttpPoster],
    *,
    clock: Clock,
    environ: Mapping[str, str] | None = None,
    folder: Path = Path(),
    policy: PushPolicy | None = None,
) -> Kernel:
    """Returns one for what posts, and nothing else. Secrets are in `environ`, and in files in `folder`."""
    outgoing = Posting(
        poster=poster,
        policy=policy or PushPolicy(),
        secrets=SecretPlaces(environ=environ or {}, config=folder),
        clock=clock,
        rng=lambda: 0.0,
        user_agent="synapsed/test",
    )
    nothing = dict.fromkeys(("control", "store", "timers", "config", "paths"))
    return kernel_of(**nothing, outgoing=outgoing, clock=clock, environ=environ or {})
