"""Finds private words in texts: secrets by their shapes and names, given words, and parts of found ones. Pure.

Texts that were found, and texts that were given, are known from then on; given ones also in the forms in which programs
write them for others (base64, escapes). Parts of them are known, too: `GRAM` letters anywhere, and their first letters
at the end of a line, where a text is being typed or was cut. Known texts are compared without blanks and frames, since
programs wrap them.
"""

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from ahocorasick_rs import AhoCorasick, Implementation

from synapsed.model.masking import is_secret_key, secret_spans
from synapsed.shared.regex import regex

SECRET, EMAIL, PERSON = "secret", "e-mail", "name of a person"
"""Kinds of texts that are found without being given."""
GRAM: Final = 8
PREFIX_MIN: Final = 3
WORD_MAX: Final = 12
"""A secret with fewer letters may be a word of a language: it is known as a whole only."""
LEARNED_MIN: Final = 5
TEXTS_MAX: Final = 100_000
CODED_MAX: Final = 300
"""Most bytes of a text that is also known in its coded forms."""
COUNTED: Final = 100
FRAMES: Final = "│┃║|▌▐"
COMMON: Final = frozenset(
    {
        *("root", "user", "users", "admin", "home", "node", "ubuntu", "debian", "runner", "work", "test", "tests"),
        *("code", "agent", "agents", "guest", "local", "localhost", "vagrant", "docker", "build", "developer", "host"),
        *("claude", "codex", "gemini", "qwen", "server", "desktop", "laptop", "model", "shell", "python", "main"),
        *("shared", "public", "vscode", "codespace", "default", "system", "debug", "project", "workspace", "linux"),
    }
)
"""Names of persons and machines that are words of screens: masked in a path only."""

_ANYWHERE, _WHOLE, _AT_END = range(3)
_EMAIL = regex(r"(?<![\w.+%-])[\w.+%-]{1,64}@(?:[A-Za-z0-9][A-Za-z0-9-]{0,62}\.){1,6}[A-Za-z]{2,24}(?![A-Za-z0-9-])")
_HOME = regex(r"(?:/home/|/Users/|\\Users\\)(?P<name>[^/\\\s'\"`:;,(){}\[\]<>|│┃]{1,64})")
_ARMOUR = regex(r"-----[A-Z0-9 ]{1,60}-----")
_KEPT = regex(rf"[^\s{FRAMES}]+")
_END = regex(rf"[\s'\"`…)\]>{FRAMES}]*(?:\n|\Z)")


class Word(NamedTuple):
    """A text that is masked wherever it stands, in letters of any case; `whole`: not within a longer word."""

    text: str
    kind: str
    whole: bool = False


class _Known(NamedTuple):
    kind: str
    text: str
    """The whole text."""
    where: int


class PrivateWords:
    """Words that a report must not contain. `searched` counts the searched letters and the places, `seen` has the kinds
    and texts that were found; `full` is True if there are more texts than can be known."""

    def __init__(self, words: Iterable[Word] = ()) -> None:
        self.searched = 0
        self.seen: set[tuple[str, str]] = set()
        self.full = False
        self._known: dict[tuple[str, int], _Known] = {}
        self._automaton: tuple[AhoCorasick, list[_Known]] | None = None
        for word in words:
            self._add(word, _coded(word.text))

    def learn(self, text: str) -> None:
        """Learns the secrets of a text, the last ones first."""
        for start, end, kind in reversed([*_shaped(text)]):
            found = _ARMOUR.sub("", text[start:end])
            squeezed, _ = _squeezed(found)
            plain = squeezed.isalpha() and len(squeezed) < WORD_MAX
            if len(squeezed) >= LEARNED_MIN and not (kind == PERSON and squeezed in COMMON):
                self._add(Word(found, kind, whole=plain or kind == PERSON))

    def _add(self, word: Word, coded: Iterable[str] = ()) -> None:
        text, _ = _squeezed(word.text)
        for form in (text, *coded) if text else ():
            self._note(form, _Known(word.kind, text, _WHOLE if word.whole else _ANYWHERE))
            for at in range(0 if word.whole or word.kind == EMAIL else len(form) - GRAM + 1):
                self._note(form[at : at + GRAM], _Known(word.kind, text, _ANYWHERE))
        for length in range(PREFIX_MIN, min(len(text), GRAM)):
            self._note(text[:length], _Known(word.kind, text, _AT_END))

    def _note(self, form: str, known: _Known) -> None:
        if len(self._known) >= TEXTS_MAX:
            self.full = True
        elif (form, known.where) not in self._known:
            self._known[form, known.where] = known
            self._automaton = None

    def find(self, text: str) -> list[tuple[int, int]]:
        """Returns the beginning and the end of each private place, in order."""
        places = list[tuple[int, int]]()
        for start, end, kind in _shaped(text):
            self.seen.add((kind, _squeezed(text[start:end])[0]))
            places.append((start, end))
        places += self._find_known(text) if self._known else ()
        self.searched += len(text) + len(places)
        merged = list[tuple[int, int]]()
        for start, end in sorted(places):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged

    @property
    def counts(self) -> dict[str, int]:
        """Returns how many different texts of each kind were found; a part of another one does not count."""
        found: dict[str, list[str]] = {}
        for kind, text in sorted(self.seen, key=lambda each: -len(each[1])):
            if not any(text in other for other in found.setdefault(kind, [])[:COUNTED]):
                found[kind].append(text)
        return {kind: len(texts) for kind, texts in found.items()}

    def _find_known(self, text: str) -> Iterator[tuple[int, int]]:
        if self._automaton is None:
            forms = [form for form, _ in self._known]
            automaton = AhoCorasick(forms, implementation=Implementation.ContiguousNFA)
            self._automaton = automaton, list(self._known.values())
        automaton, known = self._automaton
        squeezed, places = _squeezed(text)
        for which, first, last in automaton.find_matches_as_indexes(squeezed, overlapping=True):
            start, end = places[first], places[last - 1] + 1
            kind, whole, where = known[which]
            if where == _ANYWHERE or (
                not _is_letter(text[start - 1 : start])
                and (not _is_letter(text[end : end + 1]) if where == _WHOLE else _END.match(text, end) is not None)
            ):
                self.seen.add((kind, whole))
                yield start, end

    def mask(self, text: str) -> str:
        """Returns the text with an x for each private letter."""
        letters = list(text)
        for start, end in self.find(text):
            letters[start:end] = ["x" if not letter.isspace() else letter for letter in text[start:end]]
        return "".join(letters)

    def mask_json(self, value: Any, key: str = "") -> Any:
        """Returns JSON, masked: every text in it, keys too, and each text and number below a key that names a
        secret."""
        if isinstance(value, dict):
            return {self.mask(name): self.mask_json(item, name) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.mask_json(item, key) for item in value]
        if value is None or isinstance(value, bool):
            return value
        if is_secret_key(key):
            return "xxx"
        return self.mask(value) if isinstance(value, str) else value


def _shaped(text: str) -> Iterator[tuple[int, int, str]]:
    for start, end in secret_spans(text):
        yield start, end, SECRET
    for match in _EMAIL.finditer(text) if "@" in text else ():
        yield *match.span(), EMAIL
    for match in _HOME.finditer(text):
        yield *match.span("name"), PERSON


def _squeezed(text: str) -> tuple[str, list[int]]:
    """Returns the letters in lower case, without blanks and frames, and the place of each in the text."""
    parts, places = [], list[int]()
    for match in _KEPT.finditer(text):
        parts.append(match[0])
        places += range(*match.span())
    kept = "".join(parts)
    small = kept.lower()
    return small if len(small) == len(kept) else "".join(map(_small, kept)), places


def _small(letter: str) -> str:
    return small if len(small := letter.lower()) == 1 else letter


def _is_letter(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def _coded(text: str) -> Iterator[str]:
    """Yields the coded forms in which programs write a text for others, squeezed."""
    data = text.strip().encode("utf-8", "replace")
    written = [json.dumps(text)[1:-1], quote(text, safe="")]
    if LEARNED_MIN <= len(data) <= CODED_MAX:
        written.append(data.hex())
        for before in range(3):
            core = base64.b64encode(b"\0" * before + data).decode()[(0, 2, 3)[before] : (before + len(data)) * 8 // 6]
            written += [core, core.replace("+", "-").replace("/", "_")]
    return (_squeezed(form)[0] for form in written)
