"""The recordings in the repository hang together: sizes, marks, chunks, hooks."""

import json
from pathlib import Path

import pytest

from tests.real.record import INTO, RECORDED
from tests.real.recorded import SCENARIOS
from tests.real.terminal import render, statuses_in, titles_in

pytestmark = pytest.mark.recorded

LARGEST = 300_000  # bytes: they live in the repository
RECORDINGS = sorted(path for cli in RECORDED for path in INTO.glob(f"{cli}-*/*.raw"))


@pytest.mark.parametrize("raw", RECORDINGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_recording_is_whole(raw: Path) -> None:
    data, facts = raw.read_bytes(), json.loads(raw.with_suffix(".json").read_text())
    assert raw.stem in SCENARIOS
    assert len(data) <= LARGEST
    assert raw.parent.name == f"{facts['cli']}-{facts['version']}"
    offsets = [offset for _, offset in facts["chunks"]]
    assert offsets == sorted(offsets)
    assert offsets[-1] == len(data)
    labels = [label for _, _, label in facts["marks"]]
    assert labels[0] == "started"
    assert "failed" not in labels
    assert (titles_in(data), statuses_in(data)) == (facts["titles"], facts["statuses"])
    _, offset, label = facts["marks"][-1]
    assert f"=== {label}" in raw.with_suffix(".txt").read_text()
    assert render(data[:offset]).strip()[:40] in raw.with_suffix(".txt").read_text()


@pytest.mark.parametrize(
    "reports", sorted(INTO.glob("hooks/*/*.jsonl")), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_reports_are_in_order(reports: Path) -> None:
    lines = [json.loads(line) for line in reports.read_text().splitlines()]
    assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)
    for line in lines:
        assert (reports.parent / f"{line['event']}.json").is_file()
