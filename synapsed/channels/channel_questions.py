"""Questions of a program over a channel that takes a person's answer: the question in words, its options, and the
answer in the program's own words. Pure; the profile has the place of every field (`DecisionSpec`)."""

from collections.abc import Mapping
from typing import Any

from synapsed.channels.transcripts import at_path, clean
from synapsed.model.about import About, about, command_in
from synapsed.model.facts import Choice
from synapsed.profiles.channel_spec import ChoiceSpec, DecisionSpec
from synapsed.shared.regex import regex

QUESTION_MAX = 100_000
"""Characters of a question; a longer one is cut at its end."""

_VALUE = regex(r"\{=([\w.*-]+)\}")


def texts_at(told: Any, path: str) -> list[str]:
    """Returns the texts at the dotted `path`; `*` is each item of a list. A list of words is one text: a command."""
    before, star, after = path.partition("*")
    if star:
        items = at_path(told, before.rstrip("."))
        return [text for item in items for text in texts_at(item, after.lstrip("."))] if isinstance(items, list) else []
    value = at_path(told, path) if path else told
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        return [" ".join(value)]
    return [value] if isinstance(value, str) and value.strip() else []


def tool_of(spec: DecisionSpec, told: Mapping[str, Any]) -> str:
    tool = at_path(told, spec.tool)
    return tool if isinstance(tool, str) and tool else spec.called or ""


def question_of(spec: DecisionSpec, told: Mapping[str, Any]) -> str:
    """Returns the question for a person, and below it the whole command, or the subjects of the call."""
    asked = spec.question.replace("{tool}", tool_of(spec, told) or "it")
    asked = _VALUE.sub(lambda match: " ".join(texts_at(told, match[1])), asked)
    lines = [line.rstrip() for line in asked.split("\n")]
    command = next((text for path in spec.command for text in texts_at(told, path)), None)
    about = [command] if command is not None else _subjects(spec, told)
    return clean("\n".join([*filter(None, lines), *about]))[:QUESTION_MAX]


def about_of(spec: DecisionSpec, told: Mapping[str, Any]) -> About:
    """Returns the edit, or the command, that the call is about."""
    places = (at_path(told, path) for path in spec.edit)
    found = (about(place).diff for place in places if isinstance(place, dict))
    if (diff := next(filter(None, found), None)) is not None:
        return About(diff=diff)
    command = next((text for path in spec.command for text in texts_at(told, path)), None)
    return About(command=command_in(command))


def _subjects(spec: DecisionSpec, told: Mapping[str, Any]) -> list[str]:
    groups = [[entry] if isinstance(entry, str) else entry for entry in spec.subject]
    found = ([text for path in group for text in texts_at(told, path)] for group in groups)
    return next(filter(None, found), [])


def options_of(spec: DecisionSpec, told: Mapping[str, Any]) -> tuple[Choice, ...]:
    """Returns the possible answers to this question."""
    return tuple(
        Choice(key=each.key, label=_label(each, told), aliases=tuple(each.aliases))
        for each in spec.choices
        if each.needs is None or at_path(told, each.needs) not in (None, "", [], {})
    )


def _label(choice: ChoiceSpec, told: Mapping[str, Any]) -> str:
    return clean(_VALUE.sub(lambda match: " ".join(texts_at(told, match[1])), choice.label))


def reply_of(spec: DecisionSpec, told: Mapping[str, Any], key: str) -> dict[str, Any] | None:
    """Returns the answer for the option `key`, in the program's own format; None if the question has no such option."""
    choice = next((each for each in spec.choices if each.key == key), None)
    if choice is None or key not in {each.key for each in options_of(spec, told)}:
        return None
    filled = _filled(choice.reply, told)
    assert isinstance(filled, dict)
    return filled


def _filled(value: Any, told: Mapping[str, Any]) -> Any:
    if isinstance(value, str) and (whole := _VALUE.fullmatch(value)):
        return at_path(told, whole[1])
    if isinstance(value, dict):
        return {key: _filled(item, told) for key, item in value.items()}
    return [_filled(item, told) for item in value] if isinstance(value, list) else value
