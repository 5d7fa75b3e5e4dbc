"""When a bundle is suspected, and when its profiles are proved."""

from synapsed.parts.profile_tools.bundles.shelf import SHIPPED, Counts, after_rollback
from synapsed.parts.profile_tools.bundles.suspicion import Suspicion, after_trial, proved, set_aside

TAKEN = Counts(current="new", before=["old", SHIPPED], unproved=["fake", "other"])


def watching() -> Suspicion:
    return Suspicion(unproved=frozenset({"fake"}))


def test_a_program_that_ends_before_it_is_read_is_suspected() -> None:
    seen = watching()
    assert not seen.state("a", "fake", "starting", 1.0)
    assert not seen.state("a", "fake", "running", 2.0)
    assert seen.state("a", "fake", "exited", 3.0)
    assert not seen.state("a", "fake", "backoff", 3.0)  # once for each launch


def test_one_that_was_read_is_not_suspected_and_neither_is_its_profile_from_then_on() -> None:
    seen = watching()
    seen.state("a", "fake", "starting", 1.0)
    assert not seen.activity("a", "fake", "starting")
    assert not seen.activity("a", "fake", "unknown")
    assert seen.activity("a", "fake", "ready")
    assert not seen.state("b", "fake", "starting", 2.0)
    assert not seen.state("b", "fake", "exited", 3.0)


def test_what_ran_before_proves_nothing_and_is_not_suspected() -> None:
    seen = watching()
    assert not seen.activity("a", "fake", "ready")
    assert not seen.state("a", "fake", "exited", 3.0)


def test_a_person_who_stops_it_is_no_reason() -> None:
    seen = watching()
    for state in ("stopping", "stopped", "removed", "parked"):
        seen.state("a", "fake", "starting", 1.0)
        assert not seen.state("a", "fake", state, 2.0)
        assert not seen.state("a", "fake", "exited", 3.0)


def test_other_profiles_agents_are_not_looked_at() -> None:
    seen = watching()
    assert not seen.state("a", "another", "starting", 1.0)
    assert not seen.state("a", "another", "failed", 2.0)


def test_silence_is_of_one_launch() -> None:
    seen = watching()
    seen.state("a", "fake", "starting", 1.0)
    assert not seen.silent("a", 0.5)
    assert seen.silent("a", 1.0)
    assert not seen.silent("a", 1.0)


def test_one_that_comes_up_late_proves_its_profile() -> None:
    seen = watching()
    seen.state("a", "fake", "starting", 1.0)
    assert seen.silent("a", 1.0)
    assert seen.activity("a", "fake", "ready")
    assert not seen.unproved


def test_a_launch_that_was_reported_is_not_reported_again_when_it_ends() -> None:
    seen = watching()
    seen.state("a", "fake", "starting", 1.0)
    assert seen.silent("a", 1.0)
    assert not seen.state("a", "fake", "exited", 70.0)
    seen.state("a", "fake", "starting", 71.0)
    assert seen.state("a", "fake", "exited", 72.0)


def test_a_profile_that_is_proved_leaves_the_bundle_as_it_is() -> None:
    done = proved(TAKEN, "new", "fake")
    assert done is not None
    assert (done.current, done.before, done.unproved) == ("new", ["old", SHIPPED], ["other"])


def test_another_bundles_profile_is_not_proved() -> None:
    assert proved(TAKEN, "another", "fake") is None
    assert proved(after_rollback(TAKEN), "new", "fake") is None


def test_a_trial_sets_one_profile_aside_and_ends_with_the_bundle_before_or_as_it_was() -> None:
    during = set_aside(TAKEN, "new", "fake")
    assert during == TAKEN.model_copy(update={"aside": "fake"})
    assert after_trial(during, "new", "fake", came_up=True) == [Counts(current="old", before=[SHIPPED])]
    assert after_trial(during, "new", "fake", came_up=False) == [TAKEN]


def test_there_is_no_trial_without_a_reason() -> None:
    during = set_aside(TAKEN, "new", "fake")
    assert during is not None
    assert set_aside(during, "new", "other") is None, "one at a time"
    assert set_aside(TAKEN, "another", "fake") is None
    assert set_aside(TAKEN, "new", "proved") is None


def test_a_trial_that_was_overtaken_changes_nothing() -> None:
    during = set_aside(TAKEN, "new", "fake")
    assert during is not None
    assert after_trial(TAKEN, "new", "fake", came_up=True) == []
    assert after_trial(after_rollback(during), "new", "fake", came_up=True) == []
    proved_meanwhile = proved(during, "new", "fake")
    assert proved_meanwhile is not None
    (counts,) = after_trial(proved_meanwhile, "new", "fake", came_up=True)
    assert (counts.current, counts.aside) == ("new", "")


def test_an_agent_that_comes_up_during_a_trial_proves_nothing() -> None:
    seen = watching()
    seen.state("a", "fake", "starting", 1.0)
    seen.unproved -= {"fake"}
    assert not seen.activity("a", "fake", "ready")
