"""Finds secrets in texts and JSON, by the key that they stand under and by their shape, and masks them. Pure.

The letters that a token begins with, and the names, are searched for as literals, in one pass for all of them, and a
pattern is tried only where a literal was found. Every pattern is bounded and the text is searched in pieces: hostile
text costs time in proportion to its length, and no call into C lasts long. The shapes are those that makers publish for
scanners of repositories (GitHub's secret scanning, gitleaks' rules). A secret without a known shape, and without a name
that shows that it is one, is not found.

The same search runs over JSON texts, so a line break may stand as the two characters `\\n`, and a quote as `\\"`.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ahocorasick_rs import AhoCorasick, Implementation

from synapsed.shared.regex import regex
from synapsed.shared.visible import visible

__all__ = [
    "DEPTH_MAX",
    "HELD_MAX",
    "MASK",
    "is_secret_key",
    "mask",
    "mask_text",
    "nested_under_key",
    "secret_spans",
    "unfinished",
    "visible",
]

MASK = "***"

DEPTH_MAX = 32
"""Levels of lists and objects that are searched; deeper levels are masked whole."""

HELD_MAX = 16_384
"""Characters that `unfinished` holds back at most."""

_PIECE = 65_536
"""Characters that are searched at a time."""

_LITERAL_MAX = 48
"""Characters of the longest literal, and a few more."""

_ALIKE = (("\u0130", "i"), ("\u0131", "i"), ("\u017f", "s"))
"""Letters that a pattern without regard to case takes for ASCII letters, but `str.lower` does not."""

_LEFT = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4}))"
"""No letter or digit before it, except the letter of an escape in JSON."""

_U = r"[A-Za-z0-9_\-]"
_X = r"[A-Za-z0-9]"
_END = r"(?![A-Za-z0-9])"


class _Shape(NamedTuple):
    literals: tuple[str, ...]
    """Literals; one begins each match, or stands where the pattern is tried; in small letters for one of any case."""
    pattern: re.Pattern[str]
    """The secret is the match of its group `quoted` or `bare`, or the whole match."""


def _shape(literals: str, rest: str) -> _Shape:
    """Returns the shape of a word that begins with one of the `literals` and goes on as the pattern `rest`."""
    words = tuple(literals.split())
    return _Shape(words, regex(f"{_LEFT}(?:{'|'.join(map(re.escape, words))}){rest}"))


def _named(literals: str, pattern: str) -> _Shape:
    """Returns the shape of a secret that follows a name in letters of any case."""
    return _Shape(tuple(literals.split("|")), regex(pattern, re.IGNORECASE))


_SHAPES = (
    # signed statements: JWT, JWE, and tokens that are built on them
    _shape("eyJ", rf"{_U}{{8,8192}}(?:\.{_U}{{0,8192}}){{1,4}}"),
    _shape("ops_eyJ glc_eyJ", r"[A-Za-z0-9_+/=\-]{20,8192}"),
    # clouds
    _shape("AKIA ASIA ABIA ACCA", rf"[A-Z2-7]{{16}}{_END}"),
    _shape("AIza", rf"{_U}{{35}}"),
    _shape("GOCSPX-", rf"{_U}{{20,64}}"),
    _shape("ya29.", r"[A-Za-z0-9_.\-]{20,2048}"),
    _shape("1//0", rf"{_U}{{30,512}}"),
    _shape("dop_v1_ doo_v1_ dor_v1_", r"[a-f0-9]{32,128}"),
    _shape("LTAI", rf"{_X}{{16,30}}{_END}"),
    _shape("tskey-", rf"{_U}{{16,128}}"),
    _shape("HRKU-", rf"{_U}{{20,128}}"),
    _shape("fm1_ fm2_ fm1r_ fm1a_", r"[A-Za-z0-9_+/=\-]{32,4096}"),
    _shape("nfp_", rf"{_X}{{20,64}}"),
    _shape("sbp_", r"[a-z0-9]{30,64}"),
    _shape("pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9_.=\-]{20,64}"),
    _shape("pul-", r"[a-f0-9]{40}"),
    _shape("hvs. hvb. hvr.", r"[A-Za-z0-9_.\-]{20,512}"),
    _shape("dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[A-Za-z0-9.]{20,128}"),
    _shape("dapi", rf"[a-f0-9]{{32}}(?:-\d)?{_END}"),
    _shape("AGE-SECRET-KEY-1", r"[0-9A-Z]{50,64}"),
    # hosts of code
    _shape("ghp_ gho_ ghu_ ghs_ ghr_", rf"{_X}{{20,255}}"),
    _shape("github_pat_", r"[A-Za-z0-9_]{20,255}"),
    _shape("glpat- gldt- glrt- glcbt- glptt- glft- glsoat- glagent- glimt-", r"[A-Za-z0-9_.\-]{16,512}"),
    _shape("ATATT3 ATCTT3 ATBB", r"[A-Za-z0-9_=\-]{20,512}"),
    _shape("npm_", rf"{_X}{{30,64}}"),
    _shape("pypi-AgE", rf"{_U}{{30,1024}}"),
    _shape("dckr_pat_ dckr_oat_", rf"{_U}{{20,128}}"),
    _shape("rubygems_", r"[a-f0-9]{40,64}"),
    _shape("oy2", rf"[a-z0-9]{{43}}{_END}"),
    _shape("sntrys_ sntryu_", r"[A-Za-z0-9_+/=\-]{30,512}"),
    # models
    _shape("sk-ant- sk-proj- sk-svcacct- sk-admin- sk-or- sk-lf-", rf"{_U}{{8,512}}"),
    _shape("sk-", rf"(?=[A-Za-z_\-]{{0,64}}[0-9]){_U}{{20,512}}"),
    _shape("hf_ gsk_ r8_", rf"{_X}{{30,128}}"),
    _shape("pplx- xai-", rf"{_X}{{30,128}}"),
    # chat services
    _shape("xoxa xoxb xoxc xoxd xoxe xoxo xoxp xoxr xoxs", r"[-.][A-Za-z0-9_.%\-]{10,512}"),
    _shape("xapp-", r"[A-Za-z0-9\-]{10,512}"),
    _shape("hooks.slack.com/", r"(?:services|workflows|triggers)/(?P<bare>[A-Za-z0-9/_\-]{10,256})"),
    _shape("discord.com/api/webhooks/ discordapp.com/api/webhooks/", rf"\d{{5,24}}/(?P<bare>{_U}{{20,128}})"),
    _Shape((".webhook.office.com/",), regex(r"\.webhook\.office\.com/(?P<bare>[\w/@\-]{20,512})")),
    _shape("MD MT Mj Mz ND NT Nj Nz OD OT", rf"{_X}{{20,26}}\.{_U}{{6}}\.{_U}{{27,45}}"),
    _shape("SG.", rf"{_U}{{16,32}}\.{_U}{{16,64}}"),
    _shape("key- SK AC", rf"[a-f0-9]{{32}}{_END}"),
    # a bot's token, after its number
    _Shape((":AA",), regex(rf":(?P<bare>AA{_U}{{32,34}})(?!{_U})")),
    # money and shops
    _shape("sk_live_ sk_test_ rk_live_ rk_test_", rf"{_X}{{10,255}}"),
    _shape("whsec_", r"[A-Za-z0-9+/=]{16,255}"),
    _shape("sq0atp- sq0csp- sq0idp-", rf"{_U}{{22,64}}"),
    _shape("shpat_ shpca_ shppa_ shpss_", r"[a-fA-F0-9]{32}"),
    # other services
    _shape("lin_api_ lin_oauth_", rf"{_X}{{32,64}}"),
    _shape("secret_ ntn_", rf"{_X}{{40,64}}"),
    _shape("figd_ figo_ figu_ figor_", rf"{_U}{{20,128}}"),
    _shape("glsa_", rf"{_X}{{32}}_[a-f0-9]{{8}}"),
    _shape("NRAK- NRJS- NRII- NRAA-", rf"{_U}{{16,64}}"),
    _shape("PMAK-", r"[a-f0-9]{24}-[a-f0-9]{34}"),
    _shape("phc_ phx_", rf"{_X}{{30,64}}"),
    _shape("pat", r"[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    _shape("sl.", rf"{_U}{{100,2048}}"),
    _shape("CFPAT-", rf"{_U}{{43}}"),
    _shape("EZAK EZTK", rf"{_X}{{50,64}}"),
    _Shape((".atlasv1.",), regex(r"\.atlasv1\.[A-Za-z0-9_=\-]{60,80}")),
)

_NAMED = (
    r"passw(?:or)?[dt]|passphrase|(?<=[a-z0-9_-])pwd|secret|token|api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key|"
    r"auth[_-]?key|signing[_-]?key|encryption[_-]?key|storage[_-]?key|master[_-]?key|ssh[_-]?key|credentials?"
)
_NAMES = (
    "passw|passphrase|pwd|secret|token|credential|api|access|account|private|auth|signing|encryption|storage|master|ssh"
)
_QUOTED = r"""(?P<open>\\{0,3}["'`])(?P<quoted>(?:(?!(?P=open))[^\n\r]){1,4096}?)(?P=open)"""
_BARE = (
    r"(?P<bare>(?!(?:str|int|bool|bytes|float|any|none|null|true|false|await|self|string|number|optional|undefined)"
    r"(?![a-z0-9]))"  # the types and values of code, which stand where a secret would
    r"[^\s'\"`\\&;|,<>(){}\[\]$*=][^\s'\"`\\&;|,<>(){}\[\]]{0,4095}+)(?![(\[{])"
)


_BY_NAME = (
    # NAME=value, name: value, "name": "value", name => 'value', --name=value
    _named(
        _NAMES,
        rf"(?:{_NAMED})[a-z0-9_-]{{0,32}}\\{{0,3}}['\"]?\s{{0,8}}(?:=>|:=|[=:]|%3d)(?!=)\s{{0,8}}"
        rf"(?:(?:bearer|basic|token)\s{{1,8}})?(?:{_QUOTED}|{_BARE})",
    ),
    # --name value
    _named("--", rf"(?<![a-z0-9-])--(?:[a-z0-9]{{1,32}}-){{0,4}}(?:{_NAMED})\s{{1,8}}(?:{_QUOTED}|(?!-){_BARE})"),
    _named(
        "-u|--user|--proxy-user",
        r"(?<![a-z0-9-])(?:-u|--(?:proxy-)?user)[ =]?\\{0,3}['\"]?[^\s:/'\"\\]{1,256}:"
        r"(?!\d+(?!\S))(?P<bare>[^\s'\"\\/][^\s'\"\\]{0,1023})",
    ),
    _named(
        "authorization",
        r"authorization\\{0,3}['\"]?\s{0,8}[=:]\s{0,8}\\{0,3}['\"]?(?:[a-z][a-z0-9-]{0,31}\s{1,8})?"
        r"(?P<bare>[^\s'\"`\\]{1,8192})",
    ),
    _named("cookie", r"cookies?\\{0,3}['\"]?\s{0,8}[:=]\s{0,8}\\{0,3}['\"]?(?P<bare>[^\n\r'\"\\]{1,8192})"),
    _named("bearer|basic", r"(?<![a-z0-9])(?:bearer|basic)\s{1,8}(?P<bare>[a-z0-9+/_.~=-]{16,8192})"),
    # a person, under the key of an object within a text
    _named("email|e-mail", rf"e-?mail\\{{0,3}}['\"]\s{{0,8}}[:=]\s{{0,8}}{_QUOTED}"),
    # passwords, tokens in the place of a person's name, and signatures in addresses
    _named(
        "://|%3a%2f%2f",
        r"(?::|%3a)(?:/|%2f){2}[^\s/?#@:'\"<>\\⟦]{0,256}(?::|%3a)(?!@|x-oauth-basic@)(?P<bare>[^\s/?#'\"<>\\]{1,1024})(?:@|%40)",
    ),
    _named(
        "http",
        r"https?(?::|%3a)(?:/|%2f){2}(?P<bare>[^\s/?#@:%'\"<>\\⟦]{1,1024})(?::(?:x-oauth-basic)?)?(?:@|%40)",
    ),
    _named(
        "code=|key=|sig=|signature=|session=|sid=|auth=|pass=|pwd=",
        r"(?<=[?&;])(?:pass|pwd|(?:code|key|sig|signature|session|sid|auth)(?==[^\s&;#'\"<>\\]{8}))="
        r"(?P<bare>[^\s&;#'\"<>\\]{1,8192})",
    ),
    _named("x-amz-s|x-goog-s", r"x-(?:amz|goog)-[a-z-]{1,32}=(?P<bare>[^\s&;#'\"<>\\]{8,8192})"),
    # keys in armour, on several lines
    _named(
        "-----begin ",
        r"-----BEGIN (?P<kind>(?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?)-----"
        r"[^-\"]{0,16384}+(?:-----END (?P=kind)-----|(?=[-\"])|\Z)",
    ),
    _named(
        "putty-user-key-file-",
        r"PuTTY-User-Key-File-\d:(?:(?!Private-MAC)[^\"]){0,8192}+(?:Private-MAC: [0-9a-f]{1,64})?",
    ),
)


class _Finder:
    """Finds the places of the literals of `shapes`: one pass over the text for all of them (Aho and Corasick, 1975)."""

    def __init__(self, shapes: Iterable[_Shape]) -> None:
        self._tried = [(literal, shape.pattern) for shape in shapes for literal in shape.literals]
        literals = [literal for literal, _ in self._tried]
        self._literals = AhoCorasick(literals, implementation=Implementation.DFA)
        self.prefixes = frozenset(literal[:length] for literal in literals for length in range(1, len(literal)))

    def stands_in(self, word: str) -> bool:
        return bool(self._literals.find_matches_as_indexes(word))

    def spans(self, text: str, begin: int, piece: str) -> Iterator[tuple[int, int]]:
        """Yields the secrets of `text` that begin in `piece`, its part from `begin` on, perhaps in small letters."""
        last = begin
        for which, start, _ in self._literals.find_matches_as_indexes(piece, overlapping=True):
            if begin + start < last:  # within a secret that was found
                continue
            literal, pattern = self._tried[which]
            match = pattern.match(text, begin + start)
            if match is None or start >= _PIECE:
                continue
            group = next((name for name in ("quoted", "bare") if match.groupdict().get(name) is not None), 0)
            if match[group] != MASK and not (literal in _COUNTED and _NUMBER.fullmatch(match[group])):
                yield match.span(group)
                last = match.end(group)


_EXACT = _Finder(_SHAPES)
_ANY_CASE = _Finder(_BY_NAME)
_COUNTED = {"token", "api", "access", "account", "auth", "storage", "master"}
_NUMBER = regex(r"\d{1,9}(?:\.\d*)?[kKmM%]?")
"""A number beside such a word is a count: `tokens: 5`. A password may be a number."""

_KEY_WORDS = regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SECRET_WORDS = frozenset(
    {
        *("password", "passwd", "passwort", "passphrase", "pwd", "secret", "secrets", "token", "credential"),
        *("credentials", "authorization", "cookie", "cookies", "email", "apikey", "accesskey", "privatekey"),
        *("secretkey", "authkey", "signingkey", "encryptionkey", "accountkey", "storagekey", "masterkey"),
    }
)
_KINDS_OF_KEY = frozenset(
    {"api", "access", "private", "secret", "auth", "signing", "encryption", "account", "storage", "master", "ssh"}
)
_MEASURES = frozenset(
    {"count", "counts", "limit", "max", "min", "total", "budget", "type", "types", "usage", "length", "size"}
)
"""Words that make of the word beside them a measure or a kind: `token_count`, `max_token`, `credential_type`."""

_NESTED = _Finder(
    (
        _named(
            f"{_NAMES}|cookie|email|e-mail",
            rf"(?:{_NAMED}|authorization|cookie|e-?mail)[a-z0-9_-]{{0,32}}\"\s{{0,8}}:\s{{0,8}}[\[{{](?!\s{{0,8}}[\]}}])",
        ),
    )
)
_BEFORE_COLON = regex(
    r"(?:https?|sql|postgres|redis|rediss|amqps?|mongodb|srv|ftps?|ssh|git|ldaps?|smtps?|imaps?|\d{6})\Z", re.IGNORECASE
)
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))
"""ASCII without blanks, the characters of tokens."""
_LAST_NAME = regex(
    rf"(?:{_NAMED}|authorization|cookies?|bearer|basic)[a-z0-9_-]{{0,32}}+\\{{0,3}}['\"]?\s{{0,8}}+(?:=>|:=|[=:])?\s{{0,8}}+"
    r"(?:\\{0,3}[\"'`][^\"'`\n]{0,2048}+|(?:(?:bearer|basic|token)\s{1,8}+)?[!-~]{0,2048}+)\Z|"
    r"cookies?['\"]?\s{0,8}[=:][^\n]{0,2048}+\Z|(?<![a-z0-9-])(?:-u|--(?:proxy-)?user)[ =]\s{0,8}[!-~]{0,1024}+\Z",
    re.IGNORECASE,
)


def is_secret_key(key: str) -> bool:
    """Returns True if a value of the name `key` is secret: `password`, `api-key`, `X-Auth-Token`, `clientSecret`."""
    words = [word.lower() for word in _KEY_WORDS.findall(key)]
    if _MEASURES.intersection(words):
        return False
    return bool(_SECRET_WORDS.intersection(words)) or any(
        (first in _KINDS_OF_KEY and second in {"key", "keys"}) or (first, second) == ("e", "mail")
        for first, second in itertools.pairwise(words)
    )


def mask(value: Any, *, key: str = "") -> Any:
    """Returns `value` (JSON, nested) with `***` for everything under a key that names a secret, and for every secret
    within its texts and keys. `key` is the key of `value`. Booleans and null stay."""
    return _mask(key, value, 0)


def _mask(key: str, value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if is_secret_key(key) or depth > DEPTH_MAX:
        return MASK
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, Mapping):
        return {mask_text(str(name)): _mask(str(name), item, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mask("", item, depth + 1) for item in value]
    return value


def mask_text(text: str) -> str:
    """Returns `text` with `***` for every secret that is recognised by its shape or its name."""
    parts, last = [], 0
    for start, end in secret_spans(text):
        parts += [text[last:start], MASK]
        last = end
    return "".join([*parts, text[last:]]) if parts else text


def secret_spans(text: str) -> list[tuple[int, int]]:
    """Returns begin and end of each secret of `text`, in order; spans do not overlap."""
    spans: list[tuple[int, int]] = []
    for start, end in sorted(_found(text)):
        if spans and start < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def nested_under_key(text: str) -> bool:
    """Returns True if `text`, which is JSON, has a list or an object under a key that names a secret; `secret_spans`
    finds texts only."""
    return any(True for begin, piece in _pieces(text) for _ in _NESTED.spans(text, begin, _small(piece)))


def unfinished(text: str) -> int:
    """Returns how many characters at the end of `text`, a piece of a stream, may belong to a secret that goes on in the
    next piece: a word in which one has begun, a name of secrets whose value has not ended, the first letters of either,
    or a key in armour. A caller that sends a text in pieces holds these characters back until more of the text, or its
    end, has come. At most `HELD_MAX`."""
    armour = text.rfind("-----BEGIN ", max(0, len(text) - HELD_MAX))
    if armour >= 0 and "-----END " not in text[armour:]:
        return len(text) - armour
    name = _LAST_NAME.search(text, max(0, len(text) - 2048))
    return max(0 if name is None else len(text) - name.start(), _begun(text))


def _begun(text: str) -> int:
    """Returns the length of the last word of `text`, if a secret may have begun in it, else 0."""
    word = text[-HELD_MAX:]
    word = word[len(word.rstrip(_PRINTABLE)) :]
    begun = _EXACT.stands_in(word) or _ANY_CASE.stands_in(word.lower())
    lengths = range(1, min(len(word), _LITERAL_MAX) + 1)
    return len(word) if begun or any(_may_begin(word, length) for length in lengths) else 0


def _may_begin(word: str, length: int) -> bool:
    """Returns True if the last `length` characters of `word` may be the first ones of a literal."""
    begins, before = word[-length:], word[:-length][-1:]
    if begins == ":" and not _BEFORE_COLON.search(word[:-1]):
        return False  # the end of a sentence far more often
    known = begins in _EXACT.prefixes or begins.lower() in _ANY_CASE.prefixes
    return known and not (begins[0].isalnum() and before.isalnum())


def _found(text: str) -> Iterator[tuple[int, int]]:
    for begin, piece in _pieces(text):
        yield from _EXACT.spans(text, begin, piece)
        yield from _ANY_CASE.spans(text, begin, _small(piece))


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Yields the pieces in which `text` is searched, each with the place where it begins."""
    for begin in range(0, len(text), _PIECE):
        piece = text[begin : begin + _PIECE + _LITERAL_MAX]
        yield begin, piece.encode(errors="replace").decode()  # a lone surrogate becomes a question mark: one for one


def _small(piece: str) -> str:
    """Returns `piece` in small letters; each letter keeps its place."""
    for letter, plain in _ALIKE:
        piece = piece.replace(letter, plain)
    return piece.lower()
