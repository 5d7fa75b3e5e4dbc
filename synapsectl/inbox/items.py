"""What waits for a person (`GET /inbox`), and what each of it can be answered with."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from synapsed.shared.choices import choice

Item = Mapping[str, Any]

KINDS = {
    "permission": "permission",
    "question": "question",
    "plan": "plan",
    "sign_in": "sign-in",
    "limit": "limit",
    "account": "account",
    "failure": "failure",
    "crash_loop": "crash loop",
    "unreadable": "not readable",
    "finished": "finished",
    "alert": "alert",
}
"""What a kind is called."""

HIDDEN = "password"
"""Type of a prompt whose answer nobody may see."""

WHERE = {
    "terminal": "at its terminal",
    "control": "by the tool",
    "http": "over HTTP",
    "a2a": "over A2A",
    "inbox": "in another inbox",
}
"""Where an answer came from."""


class Chosen(NamedTuple):
    """An answer: what is given to the program, and how a person reads it. `because`: the agent's next message."""

    text: str
    label: str
    because: str | None = None


class NoAnswer(Exception):
    """There is no such answer to this; the message says what else a person can do."""


def digits(item: Item) -> dict[str, Mapping[str, Any]]:
    """The options by the digit that chooses each: its own key where that is a digit, else the first that is free."""
    options = item.get("options") or []
    own = {str(option["key"]): option for option in options if _is_digit(str(option["key"]))}
    free = [digit for digit in "123456789" if digit not in own]
    found: dict[str, Mapping[str, Any]] = {}
    for option in options:
        key = str(option["key"])
        if _is_digit(key):
            found[key] = option
        elif free:
            found[free.pop(0)] = option
    return found


def by_digit(item: Item, digit: str) -> Chosen:
    """Raises NoAnswer."""
    option = digits(item).get(digit)
    if option is None:
        raise NoAnswer(f"there is no option {digit}" if is_asked(item) else _no_question(item))
    return Chosen(str(option["key"]), str(option["label"]))


def yes_or_no(item: Item, *, accept: bool) -> Chosen:
    """The option that says so to what is asked now, and to no more. Raises NoAnswer."""
    if not is_asked(item):
        raise NoAnswer(_no_question(item))
    try:
        key = choice({"type": item.get("prompt_type"), "options": item.get("options") or []}, accept=accept)
    except ValueError:
        what = "yes" if accept else "no"
        options = "press the digit of one" if item.get("options") else "press a for words"
        more = ", or Enter to attach" if has_terminal(item) else ""
        raise NoAnswer(f"no option says {what} for sure: {options}{more}") from None
    labels = {str(option["key"]): str(option["label"]) for option in item.get("options") or []}
    return Chosen(key, labels.get(key, "yes" if accept else "no"))


def in_words(item: Item, text: str) -> Chosen:
    """An answer that was typed."""
    return Chosen(text, "(hidden)" if is_hidden(item) else text)


def with_reason(refusal: Chosen, because: str) -> Chosen:
    """A no, and why."""
    return Chosen(refusal.text, f"no, because {because}", because)


def order(item: Item) -> tuple[int, str, str]:
    """The place of a row: first what is asked, then what else needs a person, then what is finished, each the oldest
    first."""
    asks = item.get("prompt_id") or item["kind"] in ("sign_in", "unreadable")
    return 2 if is_finished(item) else 0 if asks else 1, str(item["since"]), str(item["id"])


def is_finished(item: Item) -> bool:
    """Returns True for what only tells that something is done."""
    return bool(item["kind"] == "finished")


def is_asked(item: Item) -> bool:
    """Whether there is a question that can be answered from here."""
    return bool(item.get("prompt_id")) and item["kind"] != "unreadable"


def takes_words(item: Item) -> bool:
    """Whether it can be answered in words of one's own."""
    return is_asked(item) and (bool(item.get("own_words")) or not item.get("options"))


def has_terminal(item: Item) -> bool:
    """Whether a person can attach to its agent: those elsewhere that speak A2A have no terminal."""
    return bool(item.get("terminal", True))


def is_hidden(item: Item) -> bool:
    """Whether what is typed must not be shown."""
    return item.get("prompt_type") == HIDDEN


def who_answered(closed: Mapping[str, Any]) -> str:
    """Who saw to it, by the event that says so."""
    if closed.get("state") == "gone" or not closed.get("by"):
        return "no longer asked"
    who = closed.get("who") or closed["by"]
    where = WHERE.get(str(closed.get("where")), "")
    return " ".join(part for part in ("answered by", "a person" if who == "person" else str(who), where) if part)


def _no_question(item: Item) -> str:
    attaches = has_terminal(item)
    if item["kind"] == "unreadable":
        return "what stands on its screen is not understood" + (": Enter attaches" if attaches else "")
    return f"nothing is asked there: {'Enter attaches, ' if attaches else ''}x puts it away"


def _is_digit(key: str) -> bool:
    return len(key) == 1 and key in "123456789"


def table(items: Iterable[Item]) -> list[tuple[object, ...]]:
    """The rows of a pipe: agent, kind, since, what is asked, the command or edit, the folder, the prompt."""
    return [
        (
            one["agent"],
            one["kind"],
            one["since"],
            one["question"],
            one.get("command") or one.get("diff") or "-",
            one["cwd"],
            one.get("prompt_id") or "-",
        )
        for one in items
    ]
