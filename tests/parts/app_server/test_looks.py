"""How often it is looked which thread codex's terminal goes on with."""

from itertools import accumulate, islice, pairwise

from synapsed.parts.app_server.channel import looks_for_thread


def test_a_thread_is_seen_soon_after_it_is_there() -> None:
    at = list(accumulate(islice(looks_for_thread(), 20)))
    assert at[0] <= 0.1
    assert all(later <= 1.25 * before + 0.1 for before, later in pairwise(at))
    assert at[-1] < 20
