"""The table of streams: what each holds to, whatever the broker, and what is found to differ."""

from typing import Any

import pytest

from synapsed_fleet.streams import (
    CLASSES_MAX,
    GIB,
    MEMBERS_MAX,
    MIB,
    STORE_MIN,
    STREAMS,
    Difference,
    differences,
    mail_of,
    stream,
    streams,
    unchangeable,
    work_of,
)


@pytest.mark.parametrize("store", [STORE_MIN, 1 * GIB, 20 * GIB, 500 * GIB])
def test_together_they_fit_into_the_store(store: int) -> None:
    made = streams(replicas=1, store=store)
    assert sum(each["max_bytes"] for each in made) <= store * 0.96
    assert all(each["max_bytes"] >= 8 * MIB for each in made)


def test_nothing_grows_without_bound_and_nothing_is_erased_by_a_header() -> None:
    for each in streams(replicas=3, store=20 * GIB):
        assert each["max_bytes"] > 0
        assert each["deny_delete"]
        assert not each["allow_rollup_hdrs"]
        assert not each["allow_msg_schedules"]
        assert each["num_replicas"] == 3
        assert each["storage"] == "file"  # one in memory vanishes with its definition


def test_each_host_and_each_class_may_have_its_consumer() -> None:
    """Of a stream that says nothing the broker keeps 1,000 at most."""

    def most(**more: int) -> dict[str, int]:
        return {each["name"]: each["max_consumers"] for each in streams(replicas=1, store=GIB, **more)}

    assert (most()["SYN_IN"], most()["SYN_WORK"]) == (MEMBERS_MAX, CLASSES_MAX)
    assert (most(consumers=600)["SYN_IN"], most(consumers=600)["SYN_WORK"]) == (600, CLASSES_MAX)


def test_claims_outlive_what_they_claim() -> None:
    ages = {kept.name: kept.days for kept in STREAMS}
    assert ages["SYN_CLAIM"] > ages["SYN_WORK"]


def test_only_what_is_said_again_soon_may_be_unsynced() -> None:
    relaxed = [each["name"] for each in streams(replicas=1, store=GIB) if each.get("persist_mode") == "async"]
    assert relaxed == ["KV_SYN_HOSTS"]
    assert not any("persist_mode" in each for each in streams(replicas=3, store=GIB))


def test_subjects_do_not_overlap() -> None:
    roots = [subject.removesuffix(">") for kept in STREAMS for subject in kept.subjects]
    assert not [(one, other) for one in roots for other in roots if one != other and one.startswith(other)]


def test_consumers_take_their_own_subject_only() -> None:
    assert mail_of("box", replicas=1)["filter_subject"] == "syn.to.box.>"
    assert work_of("codex-hi", replicas=1)["filter_subject"] == "syn.work.codex-hi.>"
    assert mail_of("box", replicas=3)["num_replicas"] == 3


WANTED = stream(STREAMS[0], replicas=1, store=GIB)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"deny_delete": False}, "deny_delete"),
        ({"allow_rollup_hdrs": True}, "allow_rollup_hdrs"),
        ({"num_replicas": 3}, "num_replicas"),
        ({"max_age": 1}, "max_age"),
        ({"republish": {"src": ">", "dest": "x.>"}}, "republish"),
        ({"sources": [{"name": "X"}]}, "sources"),
        ({"subjects": ["syn.to.>", "syn.work.>"]}, "subjects"),
    ],
)
def test_what_somebody_changed_at_the_broker_is_found(change: dict[str, Any], key: str) -> None:
    (found,) = differences(WANTED, WANTED | change)
    assert found.key == key
    assert key in str(found)


def test_what_the_broker_leaves_out_has_its_zero() -> None:
    sparse = {key: value for key, value in WANTED.items() if value not in (False, 0, "")}
    assert differences(WANTED, sparse) == []
    without = {key: value for key, value in sparse.items() if key != "deny_delete"}
    assert [one.key for one in differences(WANTED, without)] == ["deny_delete"]


def test_what_no_update_changes_is_told_apart() -> None:
    found = differences(WANTED, WANTED | {"retention": "limits", "max_age": 1})
    assert unchangeable(found) == [Difference("retention", "workqueue", "limits")]
