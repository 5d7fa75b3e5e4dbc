"""Metrics that are written in pieces are the document that the library writes at once."""

import pytest

from synapsed.parts.telemetry.exposition import PIECE, encoder_for, expose
from synapsed.parts.telemetry.families import Family, Sample, Sheet


@pytest.mark.parametrize("accept", ["text/plain", "application/openmetrics-text; version=1.0.0"])
@pytest.mark.parametrize("odd", ["x\r#y", "x\r\n#y", "x\n#y", "\r", "#\r"])
async def test_a_line_end_in_a_label_is_no_end_of_a_line(accept: str, odd: str) -> None:
    samples = [Sample((f"{odd}{number}",), 1.0) for number in range(PIECE + 2)]
    encode, _ = encoder_for(accept)
    pieces = [piece async for piece in expose([Sheet(Family("g", "gauge", "About.", ("m",)), samples)], encode)]
    text = b"".join(pieces)
    assert text.count(b'g{m="') == text.count(b'"} 1.0\n') == len(samples)
    assert text.count(b"# TYPE") == 1
