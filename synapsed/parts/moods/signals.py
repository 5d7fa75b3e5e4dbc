"""The signals of moods and their weights: the table that docs/events.md shows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from synapsed.parts.moods.words import Emotion

type Source = Literal["text_analysis", "interaction_pattern"]

TEXT: Source = "text_analysis"
PATTERN: Source = "interaction_pattern"


@dataclass(frozen=True, slots=True)
class Signal:
    """A signal in a text, or in actions."""

    source: Source
    points: Mapping[Emotion, float]
    """Points by emotion, for each occurrence in one message or action."""
    evidence: str
    """Words that are reported with the mood."""
    when: str
    """Words for the documentation."""
    most: int = 1
    """Highest number of occurrences that counts."""


SIGNALS: Mapping[str, Signal] = {
    "angry_words": Signal(TEXT, {"frustration": 0.8}, "words of annoyance", "a strong term of frustration", 2),
    "reproach": Signal(TEXT, {"frustration": 0.4}, "words of reproach", "a mild term of frustration", 2),
    "shouting": Signal(
        TEXT, {"frustration": 0.8}, "capitals", "three words in a row in capitals, one of them an everyday word"
    ),
    "insisting": Signal(TEXT, {"frustration": 0.4}, "insisting marks", "`??`, `?!` or `!!!`, without a term of joy"),
    "drawn_out": Signal(TEXT, {"frustration": 0.4}, "a word drawn out", "`nooo`, `whyyy`, `argh`, `ugh` drawn out"),
    "hammering": Signal(TEXT, {"frustration": 0.4}, "a word repeated", "`no`, `stop`, `why` … three times in a row"),
    "angry_face": Signal(TEXT, {"frustration": 0.6}, "an angry face", "a face of frustration"),
    "sure_words": Signal(TEXT, {"confidence": 0.8}, "words of certainty", "a strong term of confidence", 2),
    "assent": Signal(TEXT, {"confidence": 0.5}, "words of assent", "a mild term of confidence", 2),
    "sure_face": Signal(TEXT, {"confidence": 0.6}, "a confident face", "a face of confidence"),
    "tired_words": Signal(TEXT, {"fatigue": 1.0}, "words of tiredness", "a strong term of fatigue", 2),
    "late_words": Signal(TEXT, {"fatigue": 0.5}, "words of a late hour", "a mild term of fatigue", 2),
    "tired_face": Signal(TEXT, {"fatigue": 0.6}, "a tired face", "a face of fatigue"),
    "glad_words": Signal(
        TEXT, {"joy": 0.8, "frustration": -0.4}, "words of joy", "a strong term of joy", 2
    ),
    "thanks": Signal(TEXT, {"joy": 0.3, "frustration": -0.2}, "words of thanks or praise", "a mild term of joy", 2),
    "glad_marks": Signal(TEXT, {"joy": 0.3}, "joyful marks", "`!!` or more beside a term of joy"),
    "glad_face": Signal(TEXT, {"joy": 0.6, "frustration": -0.2}, "a glad face", "a face of joy"),
    "interrupt": Signal(
        PATTERN, {"frustration": 0.6}, "a turn interrupted", "a task of the person's is stopped by a person"
    ),
    "denial": Signal(PATTERN, {"frustration": 0.5}, "a refusal", "a person gives the answer that says no"),
    "failure": Signal(PATTERN, {"frustration": 0.4, "joy": -0.4}, "a task that failed", "a task of the person's fails"),
    "retry": Signal(
        PATTERN, {"frustration": 0.7}, "the same tried again",
        "the same question within 30 minutes, after it failed or was stopped",
    ),
    "repeat": Signal(
        PATTERN, {"frustration": 0.5}, "the same question again",
        "the same question within 30 minutes, though it was answered or is worked on; once for each time before", 3,
    ),
    "urgency": Signal(PATTERN, {"frustration": 0.4}, "a message that interrupts", "a message of priority 5"),
    "quick_success": Signal(
        PATTERN, {"confidence": 0.5, "frustration": -0.2}, "a quick success",
        "a task of the person's is completed within 2 minutes of its delivery"
    ),
    "streak": Signal(
        PATTERN, {"joy": 0.6}, "quick successes in a row", "the third quick success in a row, and each further one"
    ),
    "long_session": Signal(
        PATTERN, {}, "a long session",
        "work without a pause of 30 minutes: fatigue is 2 at least after 2 hours, 3 after 3, 4 after 4½, 5 after 6"
    ),
}  # fmt: skip
"""Signals by name."""

TEXT_MOST = 2.0
"""Most points that the text of one message gives to an emotion."""

HALF_LIFE_S: Mapping[Emotion, float] = {"frustration": 900, "confidence": 1800, "fatigue": 3600, "joy": 600}
"""Seconds in which points halve."""

REACHES = (1.0, 2.0, 3.2, 4.5)
"""Points from which on the level is 2, 3, 4, 5."""

LEAVES = (0.5, 1.4, 2.5, 3.7)
"""Points below which the level is less than 2, 3, 4, 5 again: between both bounds it stays unchanged."""


def points(found: Mapping[str, int], source: Source) -> dict[Emotion, float]:
    """Returns the points of the signals of `source` together; `found`: number of each."""
    total: dict[Emotion, float] = {}
    for name, count in found.items():
        signal = SIGNALS[name]
        if signal.source == source:
            for emotion, each in signal.points.items():
                total[emotion] = total.get(emotion, 0.0) + each * min(count, signal.most)
    most = TEXT_MOST if source == TEXT else float("inf")
    return {emotion: min(value, most) for emotion, value in total.items()}
