"""When a bundle is suspected, and what follows from a trial."""

from synapsed.parts.bundles.shelf import SHIPPED, Counts, Trial, after_rollback, after_taking
from synapsed.parts.bundles.trial import Suspicion, begun, ended, proved

TRIAL = Trial(digest="new", agent="a", profile="fake", why="the program ended")
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


def test_a_trial_sets_the_bundle_aside() -> None:
    counts = begun(TAKEN, TRIAL)
    assert counts is not None
    assert (counts.current, counts.before, counts.trial) == ("old", [SHIPPED], TRIAL)
    assert counts.kept == {"old", "new"}
    assert begun(counts, TRIAL) is None, "one at a time"


def test_there_is_no_trial_of_what_counts_no_more_or_was_proved() -> None:
    assert begun(after_rollback(TAKEN), TRIAL) is None
    done = proved(TAKEN, "new", "fake")
    assert done is not None
    assert done.unproved == ["other"]
    assert begun(done, TRIAL) is None
    assert proved(TAKEN, "another", "fake") is None


def test_an_agent_that_comes_up_without_it_leaves_it_aside() -> None:
    during = begun(TAKEN, TRIAL)
    assert during is not None
    after = ended(during, TRIAL, came_up=True)
    assert after is not None
    assert (after.current, after.before, after.unproved, after.trial) == ("old", [SHIPPED], [], None)
    assert after.set_aside == {"new": "the program ended"}
    assert after_taking(after, "new", ["fake"]).set_aside == {}


def test_an_agent_that_does_not_come_up_either_way_acquits_the_profile() -> None:
    during = begun(TAKEN, TRIAL)
    assert during is not None
    after = ended(during, TRIAL, came_up=False)
    assert after is not None
    assert (after.current, after.before, after.unproved) == ("new", ["old", SHIPPED], ["other"])
    assert begun(after, TRIAL) is None


def test_a_person_who_goes_back_meanwhile_ends_it() -> None:
    during = begun(TAKEN, TRIAL)
    assert during is not None
    gone = during.model_copy(update={"trial": None})
    assert ended(gone, TRIAL, came_up=True) is None


def test_without_a_bundle_before_the_shipped_profiles_count() -> None:
    counts = begun(Counts(current="new", unproved=["fake"]), TRIAL)
    assert counts is not None
    assert counts.current == SHIPPED
