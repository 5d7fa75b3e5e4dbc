"""W3C trace context: what is read, what is passed over, and ids that are the same for everybody."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.model.trace import TraceContext, context_of, headers_of, is_sampled, parent_of, span_id

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GOOD = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (GOOD, TraceContext(TRACE, SPAN)),
        (f" {GOOD} ", TraceContext(TRACE, SPAN)),
        (f"00-{TRACE}-{SPAN}-00", TraceContext(TRACE, SPAN, sampled=False)),
        (f"00-{TRACE}-{SPAN}-03", TraceContext(TRACE, SPAN)),
        (f"cc-{TRACE}-{SPAN}-01-what-the-future-will-be-like", TraceContext(TRACE, SPAN)),
        (f"cc-{TRACE}-{SPAN}-01.what-the-future-will-not-be-like", None),
        (f"00-{TRACE}-{SPAN}-01-too-much", None),
        (f"ff-{TRACE}-{SPAN}-01", None),
        (f"00-{TRACE.upper()}-{SPAN}-01", None),
        (f"00-{'0' * 32}-{SPAN}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE[:-1]}-{SPAN}-01", None),
        (f"00-{TRACE}-{SPAN}-1", None),
        ("", None),
        (None, None),
        (17, None),
        ([GOOD], None),
    ],
)
def test_what_comes_from_outside(value: object, expected: TraceContext | None) -> None:
    assert TraceContext.parse(value) == expected


@pytest.mark.parametrize(
    ("state", "kept"),
    [("a=1,b=2", "a=1,b=2"), ("x" * 513, ""), ("a=1\r\nHost: x", ""), ("a=\u00e9", ""), (None, ""), (3, ""), ("", "")],
)
def test_the_state_is_passed_on_where_it_is_harmless(state: object, kept: str) -> None:
    found = TraceContext.parse(GOOD, state)
    assert found is not None
    assert found.state == kept
    assert found.metadata() == {"traceparent": GOOD} | ({"tracestate": kept} if kept else {})


@given(st.text(), st.text())
def test_anything(parent: str, state: str) -> None:
    found = TraceContext.parse(parent, state)
    if found is not None:
        assert TraceContext.parse(found.traceparent, found.state) == found


def test_a_task_is_part_of_its_senders_trace_or_has_one_of_its_own() -> None:
    own = context_of("task", {}, share=1.0)
    assert own == context_of("task", {"sender": "x"}, share=1.0), "whoever asks"
    assert TraceContext.parse(own.traceparent) == own
    assert own != context_of("another", {}, share=1.0)
    assert not context_of("task", {}, share=0.0).sampled
    part = context_of("task", {"traceparent": GOOD, "tracestate": "a=1"}, share=0.0)
    assert part == TraceContext(TRACE, own.span_id, sampled=True, state="a=1"), "its sender says whether it is sampled"
    assert not context_of("task", {"traceparent": f"00-{TRACE}-{SPAN}-00"}, share=1.0).sampled
    assert context_of("task", {"traceparent": "nonsense"}, share=1.0) == own
    child = context_of("child", part.metadata(), share=1.0)
    assert (child.trace_id, child.span_id) == (TRACE, span_id("child"))


def test_the_share_of_traces_that_are_sampled() -> None:
    ids = [context_of(f"task-{number}", {}, share=1.0).trace_id for number in range(2000)]
    for share in (0.0, 0.1, 0.5, 1.0):
        sampled = sum(is_sampled(trace_id, share) for trace_id in ids)
        assert abs(sampled - share * len(ids)) < 150
    assert {trace_id for trace_id in ids if is_sampled(trace_id, 0.1)} <= {
        trace_id for trace_id in ids if is_sampled(trace_id, 0.5)
    }


def test_headers_are_those_of_the_metadata() -> None:
    assert headers_of({"traceparent": GOOD, "tracestate": "a=1", "x": "y"}) == {
        "traceparent": GOOD,
        "tracestate": "a=1",
    }
    assert headers_of({"traceparent": "x\r\ny: z"}) == {}
    assert parent_of({}) is None
