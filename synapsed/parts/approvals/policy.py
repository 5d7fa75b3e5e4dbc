"""Rules for the tool calls that an agent may make without a person, and the decisions by them. Pure.

A rule names a tool and, in parentheses, what may be called: ``Bash(git status*)``, ``Read``, ``Edit(src/*)``,
``mcp__files__*``. Tools are named as the program names them, without regard to case. `*` stands for any text, `?` for
one character, everything else for itself.

What makes a rule safe to write:

- **deny wins over allow**, and in each list the first rule that matches is the one that is named;
- in an *allow* rule for a shell command a wildcard never matches a character that begins another command, or redirects
  (``; & | < > ( ) $ ` `` and line breaks): ``Bash(git status*)`` does not allow ``git status; rm -rf /``.
  To allow such a command, write those characters in the rule: ``Bash(git log * | head *)``. Nor does a wildcard lead
  out of a folder by ``..``;
- a *deny* rule matches the whole command and each of its parts, as it is written and in plain words (without quotes,
  assignments, redirections and the program's folder, one blank between words): ``Bash(rm *)`` denies
  ``cd / && /bin/rm  -rf *``. A shell has other ways to say the same; deny rules are a convenience, what is not allowed
  is asked about;
- a path is the same however it is written: absolute, in the agent's folder, or below ``~``;
- where a call is about several things (files of one patch), an *allow* rule means it if it means each of them, a *deny*
  rule if it means one;
- a tool without parentheses means every call of it, whatever it says.
"""

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from synapsed.shared.regex import regex

type Verdict = Literal["allow", "deny", "escalate"]

RULE_MAX = 2000
"""Most characters of a rule."""

_RULE = regex(r"(?P<tool>[\w.*?:/-]+)\s*(?:\((?P<pattern>.*)\))?", re.DOTALL)
_HARMLESS = r"[^;&|<>()$`\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]"
"""Characters that a wildcard matches in a shell command that is to be allowed."""
_PARTS = regex(r"[;&|()`{}\n\r]|\$\(|<\(|>\(")
_ASSIGNMENTS = regex(r"^(?:\w+\+?=\S*\s+)+")
_CONTINUED = regex(r"\\\r?\n")
_REDIRECTION = regex(r"&?[<>]{1,3}[&|]?[ \t]*+[^\s;&|<>()]++")
_WORD = regex(r"""(?:'[^']*+'|"(?:\\.|[^"\\])*+"|\\.|\S)++""", re.DOTALL)
_QUOTES = regex(r"""\\(.)|['"]""", re.DOTALL)
_BEFORE = frozenset(("!", "if", "then", "elif", "else", "while", "until", "do", "time", "command", "builtin", "exec"))
"""Words of a shell that may precede a command."""
_UPWARDS = regex(r"(?:^|[/\\])\.\.(?:[/\\]|$)")
_ADDRESS = regex(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call that a program wants to make."""

    tool: str
    command: str | None = None
    """A shell command; None for other tools."""
    subjects: tuple[str, ...] = ()
    """Paths or addresses that other tools act on."""
    folder: str | None = None
    """Absolute path to which the agent's paths, and those of its rules, are relative."""
    home: str | None = None
    """Absolute path of the home folder."""
    input: dict[str, Any] = field(default_factory=dict)
    """The whole input from the program."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; `pattern` is None if every call of the tool is meant."""

    text: str
    tool: str
    pattern: str | None

    @classmethod
    def parse(cls, text: str) -> "Rule":
        """Parses `text` as a rule. Raises ValueError, which explains the syntax."""
        match = _RULE.fullmatch(text.strip()) if len(text) <= RULE_MAX else None
        pattern = match["pattern"] if match is not None else None
        if match is None or (pattern is not None and not pattern.strip()):
            raise ValueError(f"{text[:80]!r} is no rule: write Tool or Tool(pattern), like Bash(git status*)")
        return cls(text.strip(), match["tool"], pattern.strip() if pattern is not None else None)

    def allows(self, call: ToolCall) -> bool:
        """Returns True if the rule, in a list of allowed calls, matches `call`."""
        if not self._is_for_tool(call):
            return False
        if self.pattern is None:
            return True
        if call.command is not None and not _matches(self.pattern, call.command.strip(" \t"), _HARMLESS):
            return False
        return not self.unclear(call) and all(self._allows_subject(call, subject) for subject in call.subjects)

    def _allows_subject(self, call: ToolCall, subject: str) -> bool:
        if subject != subject.strip():  # some programs take it without
            return False
        places = [subject] if _ADDRESS.match(subject) else _places(call, subject)
        pattern = self._subject_pattern(call)
        return any(_matches(pattern, place, r"[^\x00-\x1f\x7f]") for place in places if not _UPWARDS.search(place))

    def denies(self, call: ToolCall) -> bool:
        """Returns True if the rule, in a list of denied calls, matches `call` or a part of it."""
        if not self._is_for_tool(call):
            return False
        if self.pattern is None:
            return True
        said = _commands(call.command) if call.command is not None else ()
        if any(_matches(self.pattern, text, r"[\s\S]") for text in said):
            return True
        pattern = self._subject_pattern(call)
        places = (place for subject in call.subjects for place in (subject, *_places(call, subject.strip())))
        return any(_matches(pattern, place, r"[\s\S]") for place in places)

    def _subject_pattern(self, call: ToolCall) -> str:
        """Returns the pattern of a subject; a pattern that leads out of the folder becomes an absolute path."""
        pattern = self.pattern or ""
        if call.folder is None or _UPWARDS.search(pattern) is None:
            return pattern
        return posixpath.normpath(posixpath.join(call.folder, pattern))

    def unclear(self, call: ToolCall) -> bool:
        """Returns True if the tool matches, but the program does not give the command or the paths of the call."""
        return self.pattern is not None and call.command is None and not call.subjects and self._is_for_tool(call)

    def _is_for_tool(self, call: ToolCall) -> bool:
        return _matches(self.tool.casefold(), call.tool.casefold(), r"[\s\S]")


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision. `rule` is the text of the rule that decided, None if the default did."""

    verdict: Verdict
    rule: str | None = None

    @property
    def reason(self) -> str:
        """Explanation for people and models: the rule that decided."""
        how = {"allow": "allowed", "deny": "denied", "escalate": "left to the person"}[self.verdict]
        return f"{how} by the rule {self.rule}" if self.rule is not None else f"{how}: no rule is for it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """An agent's rules; `default` decides if no rule matches."""

    default: Verdict = "escalate"
    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()

    @classmethod
    def of(cls, default: Verdict, allow: Iterable[str], deny: Iterable[str]) -> "Policy":
        """Returns the policy with these rules. Raises ValueError if a text is no rule."""
        return cls(default=default, allow=tuple(map(Rule.parse, allow)), deny=tuple(map(Rule.parse, deny)))

    @property
    def silent(self) -> bool:
        """Returns True if every call is left to the person, so that there is nothing to decide."""
        return self.default == "escalate" and not self.allow and not self.deny

    @property
    def refusing(self) -> frozenset[str]:
        """Returns the names of the lists or the default that may refuse a call."""
        may = {"deny": bool(self.deny), "default": self.default == "deny"}
        return frozenset(name for name, so in may.items() if so)

    def decide(self, call: ToolCall) -> Decision:
        for rule in self.deny:
            if rule.denies(call):
                return Decision("deny", rule.text)
        for rule in self.deny:
            if rule.unclear(call):
                return Decision("escalate", rule.text)
        for rule in self.allow:
            if rule.allows(call):
                return Decision("allow", rule.text)
        return Decision(self.default)


def _places(call: ToolCall, subject: str) -> list[str]:
    """Returns the subject in every form in which a rule may name it: unchanged, and as a path."""
    if call.folder is None:
        return [subject]
    below = subject.removeprefix("~/")
    base = call.home if below != subject and call.home is not None else call.folder
    path = posixpath.normpath(posixpath.join(base, below))
    path = path[1:] if path.startswith("//") else path  # POSIX leaves two slashes to each system: here they mean one
    bases = (("", call.folder), ("~/", call.home))
    inside = [(name, at.rstrip("/") + "/") for name, at in bases if at is not None]
    return [subject, path, *(name + path[len(at) :] for name, at in inside if path.startswith(at))]


def _commands(text: str) -> list[str]:
    """Returns a shell command, each of its parts as it would be written alone (also with the blanks at its end), and
    each part in plain words."""
    parts = [_ASSIGNMENTS.sub("", part.lstrip()) for part in _PARTS.split(text)]
    plain = map(_plain, _PARTS.split(_REDIRECTION.sub(" ", _CONTINUED.sub("", text))))
    return [text.strip(), *(form for part in parts for form in (part, part.rstrip()) if form), *filter(None, plain)]


def _plain(part: str) -> str:
    """Returns the words of a command, without the words before it and without its program's folder."""
    words = [_QUOTES.sub(r"\1", word) for word in _WORD.findall(part)]
    while words and (words[0] in _BEFORE or words[0].isdecimal() or _ASSIGNMENTS.match(f"{words[0]} ")):
        del words[0]
    return " ".join([words[0].rpartition("/")[2], *words[1:]]) if words else ""


def _matches(pattern: str, text: str, wild: str) -> bool:
    return _compiled(pattern, wild).fullmatch(text) is not None


@lru_cache(maxsize=512)
def _compiled(pattern: str, wild: str) -> re.Pattern[str]:
    """Compiles a pattern that takes the first place that fits between two stars, and does not backtrack: its time is
    linear in the text."""
    first, *rest = (
        "".join(wild if piece == "?" else re.escape(piece) for piece in re.split(r"(\?)", segment))
        for segment in re.split(r"\*+", pattern)
    )
    if not rest:
        return re.compile(first)
    middle = "".join(f"(?>{wild}*?{segment})" for segment in rest[:-1])
    return re.compile(f"{first}{middle}{wild}*{rest[-1]}")
