"""Finds the signals of moods in the text of a message.

Each step goes over the text once, and its patterns do not backtrack; the input is `model.task.ends` of a message. So
the cost is bounded for any text. Text that is not the writer's own is left out: code, quotations, tables.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from synapsed.parts.moods.words import FACES, JAPANESE, MILD, NEGATIONS, NOT_BEHIND, STRONG, Emotion, Terms
from synapsed.shared.regex import regex

_NARROW = {0xFF01 + offset: 0x21 + offset for offset in range(94)} | {0x3000: 0x20, ord("’"): 0x27}
"""Wide forms, and the curly apostrophe. NFKC is not used, because it turns one character into up to 18."""

_CODE = regex(r"`[^`\n]*`")
_QUOTED = regex('["“「『][^"“”「」『』\\n]{0,200}["”」』]')
_FENCES = ("```", "~~~")
_ALIEN = (">", "    ", "\t", "|", "$ ", "+", "- ", "@@", "#")
"""Beginnings of lines that are pasted, quoted or listed."""
_TOKEN = regex(r"[a-z]+(?:'[a-z]+)?|[.,:;!?\n]")
"""A word, or the end of a sentence or of a part of one."""
_ENDS = frozenset(".,:;!?\n")
_CAPITALS = regex(r"\b[A-Z][A-Z']*+(?:[ ,!?]++[A-Z][A-Z']*+){2,}+")
"""Words in capitals in a row."""
_JAPANESE = regex("[\u3040-\u30ff\u4e00-\u9fff]")
_INSISTING = regex(r"\?\?|\?!|!\?|!!!")
_TRIPLE = regex(r"([a-z])\1\1+")

_EVERYDAY = frozenset({"AGAIN", "ALREADY", "DON'T", "EVER", "IT", "JUST", "MY", "NEVER", "PLEASE", "STILL", "STOP"})
_EVERYDAY |= {"THAT", "THIS", "TOLD", "WHAT", "WHY", "WORK", "WORKS", "YOU", "YOUR"}
"""Words of which one must be among the words in capitals: acronyms and SQL statements are several words in capitals,
too."""
_DRAWN_OUT = frozenset({"no", "why", "argh", "ugh", "please", "stop", "omg"})
_HAMMERED = frozenset({"no", "stop", "why", "wrong", "nope", "please"})
REPEATED = 3

_OF: Mapping[Emotion, tuple[str, str, str]] = {
    "frustration": ("angry_words", "reproach", "angry_face"),
    "confidence": ("sure_words", "assent", "sure_face"),
    "fatigue": ("tired_words", "late_words", "tired_face"),
    "joy": ("glad_words", "thanks", "glad_face"),
}
"""Signals of strong terms, mild terms and emoticons."""


def _index(terms: Terms, kind: int) -> Iterator[tuple[str, tuple[tuple[str, ...], str]]]:
    for emotion, listed in terms.items():
        for term in listed:
            words = tuple(_TOKEN.findall(term))
            yield words[0], (words, _OF[emotion][kind])


def _by_beginning() -> dict[str, dict[str, list[tuple[tuple[str, ...], str]]]]:
    found: dict[str, dict[str, list[tuple[tuple[str, ...], str]]]] = {}
    for first, term in (*_index(STRONG, 0), *_index(MILD, 1)):
        second = term[0][1] if len(term[0]) > 1 else ""
        found.setdefault(first, {}).setdefault(second, []).append(term)
    for by_second in found.values():
        for terms in by_second.values():
            terms.sort(key=lambda term: len(term[0]), reverse=True)  # the longest one that fits counts
    return found


_ENGLISH = _by_beginning()
"""Terms by their first word, then by their second; empty for those of one word."""


def own_words(text: str) -> str:
    """Returns the writer's own words of the text, wide letters and marks in their common form."""
    lines, fenced = [], False
    for line in text.splitlines():
        if line.lstrip().startswith(_FENCES):
            fenced = not fenced
        elif not fenced and not line.startswith(_ALIEN):
            lines.append(line)
    own = _QUOTED.sub(" ", _CODE.sub(" ", "\n".join(lines)))
    return own if own.isascii() else own.translate(_NARROW)


def signs(own: str) -> dict[str, int]:
    """Returns the signals in `own_words`, with the number of each."""
    folded = own.casefold()
    tokens = _TOKEN.findall(folded)
    found: dict[str, int] = {}
    words = [token for token in tokens if token not in _ENDS]
    for name in (*_english(tokens), *_japanese(folded), *_faces(own), *_manner(own, words)):
        found[name] = found.get(name, 0) + 1
    glad = bool(found.keys() & {"glad_words", "thanks"})
    if glad and "!!" in own:
        found["glad_marks"] = 1
    elif not glad and _INSISTING.search(own):
        found["insisting"] = 1
    return found


def _english(tokens: Sequence[str]) -> Iterator[str]:
    """Yields the signal of each term once, even if the term is repeated."""
    told: set[tuple[str, ...]] = set()
    behind = 0
    for at, token in enumerate(tokens):
        if at < behind or token not in _ENGLISH:
            continue
        words, signal = _term_at(tokens, at)
        behind = at + len(words)
        if words and words not in told and not _negated(tokens, at):
            told.add(words)
            yield signal


def _term_at(tokens: Sequence[str], at: int) -> tuple[tuple[str, ...], str]:
    by_second = _ENGLISH[tokens[at]]
    second = tokens[at + 1] if at + 1 < len(tokens) else ""
    for words, signal in (*by_second.get(second, ()), *by_second.get("", ())):
        if tuple(tokens[at : at + len(words)]) == words:
            return words, signal
    return (), ""


def _negated(tokens: Sequence[str], at: int) -> bool:
    for token in reversed(tokens[max(0, at - 2) : at]):
        if token in _ENDS:
            return False
        if token in NEGATIONS:
            return True
    return False


def _japanese(folded: str) -> Iterator[str]:
    if folded.isascii() or _JAPANESE.search(folded) is None:
        return
    for kind, listed in enumerate((JAPANESE["strong"], JAPANESE["mild"])):
        for emotion, terms in listed.items():
            for term in terms:
                start = folded.find(term)
                if start >= 0 and not any(no in folded[start + len(term) :][:4] for no in NOT_BEHIND):
                    yield _OF[emotion][kind]


def _faces(own: str) -> Iterator[str]:
    pieces = frozenset(own.split())
    for emotion, faces in FACES.items():
        if any(face in own if face[0] > "\x7f" else face in pieces for face in faces):
            yield _OF[emotion][2]


def _manner(own: str, words: Sequence[str]) -> Iterator[str]:
    """Yields signals of the style: capitals, drawn out words, repeated words."""
    if any(not _EVERYDAY.isdisjoint(re.split("[ ,!?]+", row)) for row in _CAPITALS.findall(own)):
        yield "shouting"
    said = set(words)
    if any(_TRIPLE.search(word) and _TRIPLE.sub(r"\1", word) in _DRAWN_OUT for word in said):
        yield "drawn_out"
    if said & _HAMMERED and any(word in _HAMMERED and len(list(group)) >= REPEATED for word, group in groupby(words)):
        yield "hammering"
