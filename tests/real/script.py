"""What the scripted model answers: directives in a message become a `Plan`, purely.

The last text of the user decides. Directives are found anywhere in it, so a prefix such as ``[A2A:1234abcd:someone]``
or a wrapper around the message changes nothing. Several may be combined.

What is said
    ``say:<text>``            the rest of that line
    ``[[say:<text>]]``        may span lines
    ``[[answer:NAME]]``       one of `ANSWERS`
    otherwise                 ``Answer to <nonce>.`` where the nonce is the message's first word of the form
                              ``nonce-<letters, digits, - _>``, or else 12 hexadecimal digits of its SHA-256

When and how
    ``[[delay:2.5]]``         seconds before the response's first byte
    ``[[hold:NAME]]``         waits, before the first byte, until ``POST /release/NAME`` (or `Model.release`)
    ``[[hold-mid:NAME]]``     the same in the middle of the text
    ``[[stall:3]]``           seconds of silence in the middle of the text
    ``[[slow:N]]``            N characters a second (``[[slow:N chars/s]]`` is the same)

    ``[[used:37]]``           the account's limit of five hours is used up by so many per cent, as the responses say

Tools
    ``[[tool:shell:CMD]]``    calls the program's own shell tool with CMD; when its result is back, the final text
                              follows. Repeated, they are called one after another, one a request
    ``[[at-once]]``           all tools of the message are called together, in one request
    ``[[tool:shell-ask:CMD]]``  the same, asking to run it outside the program's sandbox where it has one, which makes
                              codex ask the person; the others ask before any such command
    ``[[tool:NAME:{JSON}]]``  calls the tool NAME, of the program or of synapsed's MCP server, with these arguments;
                              ``PLAN-FILE`` in them is the file that the request names for a plan
    ``[[before:<text>]]``     text said together with the first tool call (an earlier message of the same turn)

Failures
    ``[[status:529]]``        every request of this turn is answered with that HTTP status
    ``[[status:529x2]]``      only the first two are, then the answer comes
    ``[[limit:3600]]``        every request is refused as over the account's usage limit, which resets in so many
                              seconds; ``[[limit:5 until:WALL]]`` only those before that Unix time
    ``[[account:KIND]]``      every request is refused as the service refuses one of an account that does not work:
                              `login` (no valid key), `bill` (nothing is paid), `model` (there is no such model)
    ``[[overlong]]``          every request is refused as longer than the model's context
    ``[[cut]]``               the connection is closed in the middle of the text

`expected_answer` says what a message will be answered, for tests to compare with.
"""

import hashlib
import json
import re
from dataclasses import dataclass, replace
from typing import Literal

__all__ = ["ANSWERS", "Plan", "Refusal", "ToolCall", "expected_answer", "plan_for", "unwrapped", "with_plan_file"]

_DIRECTIVE = re.compile(r"\[\[([a-z-]+)(?::(.*?))?\]\]", re.DOTALL)
_SAY_LINE = re.compile(r"(?:^|[\s\]])say:[ \t]*([^\n]*)")
_NONCE = re.compile(r"\bnonce-[A-Za-z0-9_-]*[A-Za-z0-9]")
_PLAN_FILE = re.compile(r"/[\w./-]+/plans/[\w-]+\.md")
_SENDER = re.compile(r"^\s*\[A2A:[^\]\n]*\]\s*")
_LIMIT = re.compile(r"([\d.]+)(?:\s+until:([\d.]+))?")
_STATUS = re.compile(r"(\d{3})(?:\s*x\s*(\d+))?")

ANSWERS: dict[str, str] = {
    "lines200": "\n".join(f"Line {n:03d} of a long answer that no screen holds." for n in range(1, 201)),
    "paragraphs2500": "\n\n".join(f"line-{n:04d}" for n in range(2500)),
    "lines20": "\n".join(f"Line {n:03d} of an answer." for n in range(1, 21)),
    "fenced": (
        "Here is the **function** you asked for:\n\n```python\ndef add(a: int, b: int) -> int:\n"
        '    """Sum of *two* numbers."""\n    return a + b\n```\n\n'
        "- it is `pure`\n- it has _no_ surprises\n\n1. first\n2. second"
    ),
    "japanese": "これは日本語の答えです。\n\n- 一つ目：絵文字 🙂 と全角文字\n- 二つ目：「かぎ括弧」\n\n以上です。",
    "quotes": (
        "These are only quotations:\n\n    esc to interrupt\n    Do you want to proceed?\n    ❯ 1. Yes\n"
        "    Allow execution of [Shell]?\n\n"
        "API Error: 400 and `Working (1s • esc to interrupt)` are words here, nothing more."
    ),
    "table": "| name | value |\n|---|---|\n| alpha | 1 |\n| beta | 2 |",
    "short": "Done.",
    "loop": "This sentence is said over and over again. " * 40,
    "prose": (
        "The daemon keeps one small process beside each program, which alone reads its terminal and writes what it "
        "reads to a file with offsets that only grow. So the daemon may end at any time, and goes on where it was.\n\n"
        "A message is typed once: before the first byte its turn is recorded, and after a restart what the file holds "
        "tells whether it was submitted. See `docs/how-it-works.md`, or "
        "https://example.com/a/long/address/of/a/page for more.\n\nThat is all there is to it, and it is *enough*."
    ),
    "cjk": (
        "端末の幅より長い段落は折り返されますが、元の文章には改行がありません。"
        "この文はそれを確かめるために、十分な長さになるまで続きます。"
        "二つ目の文も同じ段落にあり、折り返しの位置は文字の幅で決まります。\n\n短い段落です。\n\n- 項目\n- もう一つ"
    ),
    "long-lines": "\n".join(f"Row {n}: " + " ".join(f"word{m:02d}" for m in range(1, 5 * n)) for n in range(2, 7))
    + "\n\n"
    + "x" * 300
    + " end.",
    "markup": (
        "# A heading\n\n**Bold** at the beginning, ~~gone~~, [a link](https://example.com), an escaped \\* star and "
        "&amp; an entity.\n\n> quoted\n\n```sh\nls\n```\n\n* star\n* items\n\n---\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\nEnd."
    ),
}

ANSWERS["coded"] = (
    "Here is a script for it.\n\n```python\nimport sys\n\n"
    'for line in sys.stdin:\n    print(line.upper(), end="")\n```\n\n' + ANSWERS["prose"]
)

ANSWERS["below-code"] = (
    "Here is a script for it.\n\n```python\nimport sys\n\n"
    'for line in sys.stdin:\n    print(line.upper(), end="")\n```\n\n'
    + " ".join([ANSWERS["prose"].partition("\n\n")[0]] * 3)
)

ANSWERS["steps"] = (
    "Here is a script for it, which does what you want.\n\n```python\nimport sys\n\n"
    'for line in sys.stdin:\n    print(line.upper(), end="")\n```\n\n'
    "- it is `pure`\n- it has no surprises\n\nThen run it like this:\n\n```sh\npython3 upper.py < in.txt\n```\n\n"
    + ANSWERS["prose"].partition("\n\n")[0]
)

ANSWERS["listed"] = (
    "Here is **what** it does:\n\n"
    "- it reads each line as it comes, and does not wait for the end of the file, however far away that may be from "
    "the first of its lines\n- it is **small**:\n  - one module\n  - no dependencies\n\n"
    "Then do this:\n1. write a line\n2. read it\n10. and the tenth\n\n* another mark\n\n"
    + ANSWERS["prose"].partition("\n\n")[0]
)

ANSWERS["explained"] = ANSWERS["prose"].partition("\n\n")[0] + "\n\n" + ANSWERS["fenced"]


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A call the model makes. `arguments` is None for the program's shell tool: they depend on the program."""

    name: str
    command: str = ""
    escalated: bool = False
    arguments: dict[str, object] | None = None


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why a request is refused, in the API's own form. `seconds`: when a limit resets; `until`: Unix time after which
    nothing is refused any more."""

    kind: Literal["limit", "overlong", "login", "bill", "model"]
    seconds: float = 0.0
    until: float | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How one turn is answered. Times are seconds, `rate` characters a second; `failures` None means every request."""

    text: str
    before: str = ""
    tools: tuple[ToolCall, ...] = ()
    at_once: bool = False
    delay: float = 0.0
    stall: float = 0.0
    rate: float | None = None
    hold: str | None = None
    hold_mid: str | None = None
    status: int | None = None
    failures: int | None = None
    refusal: Refusal | None = None
    cut: bool = False
    used: float | None = None


def unwrapped(message: str) -> str:
    """The message without a sender's prefix, stripped."""
    return _SENDER.sub("", message).strip()


def plan_for(message: str) -> Plan:
    """The plan that this message's directives ask for. Unknown directives and names raise ValueError."""
    single: dict[str, str] = {}
    tools: list[ToolCall] = []
    for name, argument in _DIRECTIVE.findall(message):
        if name == "tool":
            tools.append(_tool(argument))
        elif name in _KNOWN:
            single[name] = argument
        else:
            raise ValueError(f"unknown directive [[{name}]]")
    status, failures = _status(single.get("status"))
    return Plan(
        text=_text(message, single),
        before=single.get("before", ""),
        tools=tuple(tools),
        at_once="at-once" in single,
        delay=float(single.get("delay", 0)),
        stall=float(single.get("stall", 0)),
        rate=float(single["slow"].split()[0]) if "slow" in single else None,
        hold=single.get("hold"),
        hold_mid=single.get("hold-mid"),
        status=status,
        failures=failures,
        refusal=_refusal(single),
        cut="cut" in single,
        used=float(single["used"]) if "used" in single else None,
    )


def with_plan_file(plan: Plan, request: str) -> Plan:
    """The plan with the file that `request`, its JSON, names for a plan in its tools' arguments."""
    found = _PLAN_FILE.search(request)
    if found is None or not any("PLAN-FILE" in str(tool.arguments) for tool in plan.tools):
        return plan
    return replace(plan, tools=tuple(_located(tool, found[0]) for tool in plan.tools))


def _located(tool: ToolCall, path: str) -> ToolCall:
    given = (tool.arguments or {}).items()
    return replace(tool, arguments={key: path if value == "PLAN-FILE" else value for key, value in given})


def expected_answer(message: str) -> str:
    """The final text with which the model will answer this message."""
    return plan_for(message).text


_KNOWN = frozenset(
    "say answer before at-once delay hold hold-mid stall slow status cut limit account overlong used".split()  # noqa: SIM905
)


def _text(message: str, single: dict[str, str]) -> str:
    if "say" in single:
        return single["say"].strip()
    if "answer" in single:
        if single["answer"] not in ANSWERS:
            raise ValueError(f"unknown answer {single['answer']!r}")
        return ANSWERS[single["answer"]]
    plain = _DIRECTIVE.sub("", message)
    if said := _SAY_LINE.search(plain):
        return said[1].strip()
    if nonce := _NONCE.search(plain):
        return f"Answer to {nonce[0]}."
    return f"Answer to {hashlib.sha256(unwrapped(message).encode()).hexdigest()[:12]}."


def _tool(argument: str) -> ToolCall:
    name, _, rest = argument.partition(":")
    if name in ("shell", "shell-ask"):
        return ToolCall(name="shell", command=rest, escalated=name == "shell-ask")
    return ToolCall(name=name, arguments=json.loads(rest or "{}"))


def _refusal(single: dict[str, str]) -> Refusal | None:
    if "overlong" in single:
        return Refusal(kind="overlong")
    match single.get("account"):
        case "login" | "bill" | "model" as kind:
            return Refusal(kind=kind)
        case None:
            pass
        case unknown:
            raise ValueError(f"account must be login, bill or model, not {unknown!r}")
    if "limit" not in single:
        return None
    match = _LIMIT.fullmatch(single["limit"].strip())
    if match is None:
        raise ValueError(f"limit must be SECONDS or SECONDS until:WALL, not {single['limit']!r}")
    return Refusal(kind="limit", seconds=float(match[1]), until=float(match[2]) if match[2] else None)


def _status(argument: str | None) -> tuple[int | None, int | None]:
    if argument is None:
        return None, None
    match = _STATUS.fullmatch(argument.strip())
    if match is None:
        raise ValueError(f"status must be NNN or NNNxCOUNT, not {argument!r}")
    return int(match[1]), int(match[2]) if match[2] else None
