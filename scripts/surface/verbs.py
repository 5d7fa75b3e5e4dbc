"""What is typed: the verbs of both programs with their options; and the tools of the MCP server, which models call."""

import argparse
from collections.abc import Iterator

from scripts.surface.schemas import compact
from synapsectl.parsing import VerbParser, command_line, parsers
from synapsectl.verbs import ALIASES, SYNONYMS, all_verbs
from synapsed.cli import command_line as daemon_line

WIDTH = 80


def synapsectl() -> Iterator[str]:
    """The verbs of `synapsectl`, and below them theirs."""
    tool = command_line(WIDTH)
    for name, verb in all_verbs().items():
        yield f"synapsectl {name} stands among: {verb.group}"
    yield from (f"synapsectl {alias} is: {name}" for alias, name in ALIASES.items())
    yield from (f"synapsectl {word} means: {name}" for word, name in SYNONYMS.items())
    for parser in parsers(tool):
        yield from _verb(parser)


def _verb(parser: VerbParser) -> Iterator[str]:
    verb = parser.verb
    yield f"{parser.prog}: {verb.help}"
    yield from (f"{parser.prog} example: {line} ({about})" for line, about in verb.examples)
    if verb.takes_rest:
        yield f"{parser.prog} takes what stands behind --"
    if verb.default is not None:
        yield f"{parser.prog} without more is: {verb.default}"
    if not parser.parts:
        yield from _actions(parser)


def synapsed() -> Iterator[str]:
    """The verbs of `synapsed`."""
    tool = daemon_line()
    yield f"synapsed: {tool.description}"
    (adding,) = (action for action in tool._actions if isinstance(action, argparse._SubParsersAction))  # noqa: SLF001
    abouts = {one.dest: one.help for one in adding._choices_actions}  # noqa: SLF001
    for name, parser in adding.choices.items():
        yield f"synapsed {name}: {abouts.get(name)}"
        yield from _actions(parser)


def _actions(parser: argparse.ArgumentParser) -> Iterator[str]:
    places = 0
    for action in parser._actions:  # noqa: SLF001 - argparse tells them nowhere else
        if isinstance(action, argparse._HelpAction):  # noqa: SLF001
            continue
        if action.option_strings:
            name = f"option {', '.join(action.option_strings)}"
        else:
            places += 1
            name = f"argument {places} {action.dest}"
        yield f"{parser.prog} {name}: {compact(_told(action))}"
    for group in parser._mutually_exclusive_groups:  # noqa: SLF001
        names = [one.option_strings[-1] if one.option_strings else one.dest for one in group._group_actions]  # noqa: SLF001
        yield f"{parser.prog} {'one' if group.required else 'at most one'} of: {' '.join(names)}"


def _told(action: argparse.Action) -> dict[str, object]:
    """What is not as it is anyway."""
    hidden, flag = action.help == argparse.SUPPRESS, action.nargs == 0
    told = {
        "flag": flag or None,
        "repeated": isinstance(action, argparse._AppendAction) or None,  # noqa: SLF001
        "help": None if hidden or not action.help else action.help % {**vars(action), "prog": ""},
        "hidden": hidden or None,
        "choices": None if action.choices is None else [str(one) for one in action.choices],
        "metavar": action.metavar,
        "nargs": None if flag else action.nargs,
        "type": action.type.__name__ if action.type in (int, float, str) else action.type and "a form of its own",
        "required": (bool(action.option_strings) and action.required) or None,
        "const": None if action.const is True else action.const,
    }
    given = {key: value for key, value in told.items() if value is not None}
    if action.default not in (None, False, argparse.SUPPRESS):
        given["default"] = action.default if isinstance(action.default, int | float | str | list) else "of its own"
    return given


def tools() -> Iterator[str]:
    """`synapsectl mcp`."""
    from synapsectl.mcp_server import INSTRUCTIONS, TOOLS

    yield f"(instructions): {INSTRUCTIONS}"
    for tool in TOOLS:
        yield f"{tool.name}: {' '.join(tool.description.split())}"
        if tool.right is not None:
            yield f"{tool.name} needs the right: {tool.right}"
        for name, schema in tool.properties.items():
            yield f"{tool.name} {name}{'' if name in tool.optional else ' (required)'}: {compact(schema)}"
