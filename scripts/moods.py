"""The tables of `docs/events.md` that say what moods are told by.

python -m scripts.moods
"""

from collections.abc import Iterable

from scripts.events import DOCUMENT
from synapsed.parts.moods.signals import HALF_LIFE_S, LEAVES, REACHES, SIGNALS, Signal
from synapsed.parts.moods.words import FACES, JAPANESE, MILD, NEGATIONS, STRONG, Terms

BEGIN = "<!-- signals: made by python -m scripts.moods from here -->"
END = "<!-- signals: to here -->"


def document() -> str:
    """`docs/events.md` with its tables as they are to be."""
    before, rest = DOCUMENT.read_text().split(BEGIN)
    return f"{before}{BEGIN}\n\n{_tables()}\n{END}{rest.split(END)[1]}"


def _tables() -> str:
    return "\n".join([*_signals(), "", *_levels(), "", *_words()])


def _signals() -> Iterable[str]:
    yield from ("| `detected_from` | when | points |", "|---|---|---|")
    for signal in SIGNALS.values():
        when = signal.when.replace("|", "\\|")
        yield f"| `{signal.source}` | {when}{_most(signal)} | {_points(signal)} |"


def _most(signal: Signal) -> str:
    return f"; at most {signal.most} count" if signal.most > 1 else ""


def _points(signal: Signal) -> str:
    return ", ".join(f"{emotion} {each:+g}".replace("-", "−") for emotion, each in signal.points.items())


def _levels() -> Iterable[str]:
    yield from ("| level | 2 | 3 | 4 | 5 |", "|---|---|---|---|---|")
    yield "| is reached at so many points | " + " | ".join(f"{bound:g}" for bound in REACHES) + " |"
    yield "| is left below | " + " | ".join(f"{bound:g}" for bound in LEAVES) + " |"
    yield ""
    halves = ", ".join(f"{emotion} {seconds / 60:g}" for emotion, seconds in HALF_LIFE_S.items())
    yield f"Minutes in which points become half: {halves}."


def _words() -> Iterable[str]:
    yield from ("| | terms |", "|---|---|")
    lists: tuple[tuple[str, Terms], ...] = (
        ("strong", STRONG),
        ("mild", MILD),
        ("strong, Japanese", JAPANESE["strong"]),
        ("mild, Japanese", JAPANESE["mild"]),
        ("faces", FACES),
    )
    for name, terms in lists:
        for emotion, listed in terms.items():
            shown = ", ".join(f"`{term}`" for term in listed)
            yield f"| {emotion}, {name} | {shown} |"
    yield f"| negations | {', '.join(f'`{word}`' for word in sorted(NEGATIONS))} |"


if __name__ == "__main__":
    DOCUMENT.write_text(document())
