"""Times: how pauses grow."""

import pytest

from synapsed.clock import backoff


@pytest.mark.parametrize(
    ("failures", "pause"), [(0, 0.5), (1, 1.0), (2, 2.0), (3, 4.0), (4, 5.0), (5, 5.0), (100_000, 5.0)]
)
def test_pauses_grow_up_to_the_maximum_and_never_overflow(failures: int, pause: float) -> None:
    assert backoff(failures, initial=0.5, factor=2.0, maximum=5.0) == pause


def test_a_first_pause_that_is_longer_than_the_maximum() -> None:
    assert backoff(0, initial=60.0, factor=2.0, maximum=10.0) == 10.0
