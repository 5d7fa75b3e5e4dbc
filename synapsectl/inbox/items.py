"""Items that wait for a person (`GET /inbox`), and the possible answers to each."""

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
    "unreadable": "not understood",
    "finished": "finished",
    "alert": "alert",
}
"""Names of the kinds."""

HIDDEN = "password"
"""Type of a prompt whose answer must stay hidden."""

WHERE = {
    "terminal": "at its terminal",
    "control": "by the tool",
    "http": "over HTTP",
    "a2a": "over A2A",
    "inbox": "in another inbox",
}
"""Words for the place of an answer."""


class Chosen(NamedTuple):
    """An answer: the value for the program, and its text for a person. `because`: the agent's next message."""

    text: str
    label: str
    because: str | None = None


class NoAnswer(Exception):
    """There is no such answer; the message says what else a person can do."""


def digits(item: Item) -> dict[str, Mapping[str, Any]]:
    """Returns the options by the digit that chooses each: its own key if that is a digit, else the first that is
    free."""
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
    """Returns the answer of a digit. Raises NoAnswer."""
    option = digits(item).get(digit)
    if option is None:
        raise NoAnswer(f"there is no option {digit}" if is_asked(item) else _no_question(item))
    return Chosen(str(option["key"]), str(option["label"]))


def yes_or_no(item: Item, *, accept: bool) -> Chosen:
    """Returns the option that agrees (or refuses) to the present question only. Raises NoAnswer."""
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
    """Returns an answer of typed words."""
    return Chosen(text, "(hidden)" if is_hidden(item) else text)


def with_reason(refusal: Chosen, because: str) -> Chosen:
    """Returns a no with its reason."""
    return Chosen(refusal.text, f"no, because {because}", because)


def order(item: Item) -> tuple[int, str, str]:
    """Returns the sort key of a row: first questions, then other items that need a person, then finished ones, each the
    oldest first."""
    asks = item.get("prompt_id") or item["kind"] in ("sign_in", "unreadable")
    return 2 if is_finished(item) else 0 if asks else 1, str(item["since"]), str(item["id"])


def is_finished(item: Item) -> bool:
    """Returns True for an item that only reports a finished task."""
    return bool(item["kind"] == "finished")


def is_asked(item: Item) -> bool:
    """Returns True if there is a question that can be answered from here."""
    return bool(item.get("prompt_id")) and item["kind"] != "unreadable"


def takes_words(item: Item) -> bool:
    """Returns True if the item can be answered in free text."""
    return is_asked(item) and (bool(item.get("own_words")) or not item.get("options"))


def has_terminal(item: Item) -> bool:
    """Returns True if a person can attach to the item's agent: agents elsewhere that speak A2A have no terminal."""
    return bool(item.get("terminal", True))


def is_hidden(item: Item) -> bool:
    """Returns True if the typed text must stay hidden."""
    return item.get("prompt_type") == HIDDEN


def who_answered(closed: Mapping[str, Any]) -> str:
    """Returns the person or agent that handled an item, from the event that closed it."""
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
    """Returns the rows for a pipe: agent, kind, time, question, the command or edit, the folder, the prompt."""
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
