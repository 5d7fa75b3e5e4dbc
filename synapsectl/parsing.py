"""Parses the command line with argparse: a sub-parser for each verb loads the verb's module when it is used, and errors
have a suggestion.

A verb is a module of `synapsectl.commands` (or an object in one) with `configure` and `run`, or with `SUBVERBS`;
`EXAMPLES` beside them are shown by `--help`, in the manual, and are parsed by a test.
"""

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from synapsectl.output import PROGRAM, UNBROKEN, fold, harmless, is_text, named
from synapsectl.verbs import RELEASED, SYNONYMS, Verb, all_verbs, overview, subverbs_of_parts, verbs

if TYPE_CHECKING:
    from synapsectl.context import CommandContext

USAGE = 2
WIDTH = 80
"""Columns of a help without a terminal."""
USAGE_WORD = "usage: "
HELP = ("-h", "--help")
BYTES_TOO = frozenset({"FILE", "CWD"})
"""Kinds of values that need not be UTF-8: names of files here. All others become text of a message to the daemon."""

type Example = tuple[str, str]
"""A command line as a person types it, and its purpose."""
type Configure = Callable[[argparse.ArgumentParser], None]
type Run = Callable[[argparse.Namespace, "CommandContext"], int]


class SubVerb(NamedTuple):
    """One action of a verb, with a command line of its own; or a verb itself. One with `subverbs` has neither
    `configure` nor `run`."""

    help: str
    configure: Configure | None = None
    run: Run | None = None
    examples: Sequence[Example] = ()
    takes_rest: bool = False
    """True if it uses the words after `--`."""
    takes_bytes: bool = False
    """True if its words may be no UTF-8."""
    subverbs: "Mapping[str, SubVerb | Verb]" = MappingProxyType({})
    default: str | None = None
    """The sub-verb that is meant if none is given."""


def parse(arguments: Sequence[str], *, columns: int | None = None) -> tuple[argparse.Namespace, Run]:
    """Returns the parsed command line, and the function that runs it. `rest` are the words after the first `--`, None
    without one: they are never taken for options. Ends the process if the command line is wrong or asks for help."""
    given, rest = list(arguments), None
    if "--" in given:
        at = given.index("--")
        given, rest = given[:at], given[at + 1 :]
    ours = bool(given) and given[0] in verbs()
    args = command_line(columns, verbs() if ours else None).parse_args(given)
    parser: VerbParser = args.parser
    del args.parser
    args.rest = rest
    verb = parser.verb
    if rest is not None and not verb.takes_rest:
        parser.error(f"{parser.prog.removeprefix(f'{PROGRAM} ')} takes nothing after --")
    if not all(map(is_text, arguments)) and not verb.takes_bytes:
        _read_bytes(parser, args)
    assert verb.run is not None, "a verb with sub-verbs is never the last word"
    return args, verb.run


def _read_bytes(parser: "VerbParser", args: argparse.Namespace) -> None:
    """Decodes as UTF-8 the words that Python has read as ASCII because of the locale, except names of files. Ends the
    process if one is no UTF-8."""
    files = {one.dest for one in parser.own_actions if str(one.metavar or one.dest).upper() in BYTES_TOO}

    def read(value: Any) -> Any:
        if isinstance(value, list):
            return [read(each) for each in value]
        if not isinstance(value, str) or is_text(value):
            return value
        try:
            return os.fsencode(value).decode()
        except UnicodeDecodeError:
            return parser.exit(USAGE, f"{parser.prog}: an argument is not UTF-8: '{named(value)}'\n")

    for name in vars(args).keys() - files:
        setattr(args, name, read(getattr(args, name)))


def command_line(columns: int | None = None, known: Mapping[str, Verb] | None = None) -> "VerbParser":
    """Returns the parser of the whole tool, with the `known` verbs: all, if they are not given. No verb's module is
    imported yet."""
    return _Tool(prog=PROGRAM, load=lambda: SubVerb("", subverbs=known or all_verbs()), columns=columns)


def parsers(parser: "VerbParser") -> "Iterator[VerbParser]":
    """Yields the parsers of everything below this one, each before those of its sub-verbs."""
    for part in parser.parts.values():
        yield part
        yield from parsers(part)


def of_one(parser: argparse.ArgumentParser, *, json: str, name: str = "its name here", metavar: str = "NAME") -> None:
    """Configures a sub-verb with one name as its argument, and `--json`."""
    parser.add_argument("name", metavar=metavar, help=name)
    parser.add_argument("--json", action="store_true", help=json)


def of_all(parser: argparse.ArgumentParser) -> None:
    """Configures a sub-verb that lists."""
    parser.add_argument("--json", action="store_true", help="print a JSON array of them")


def seconds(text: str) -> float:
    """Returns the value of an option that takes a length of time."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return value


def nearest(word: str, words: Iterable[str], *, cutoff: float = 0.7) -> list[str]:
    """Returns the words that `word` may stand for: two at the most, with at least the likeness `cutoff`."""
    from difflib import get_close_matches

    return get_close_matches(word, list(words), n=2, cutoff=cutoff)


class VerbParser(argparse.ArgumentParser):
    """A parser that loads its verb when it is used: none of the others is imported."""

    def __init__(
        self, *, prog: str, load: Callable[[], SubVerb], columns: int | None, about: str = "", color: bool = False
    ) -> None:
        # Without a width, the formatter asks shutil for one with every option: 5 ms of imports.
        formatter = partial(argparse.HelpFormatter, width=(columns or WIDTH) - 2)
        super().__init__(prog=prog, add_help=False, allow_abbrev=False, formatter_class=formatter)
        self.color = color  # Python 3.14 has it, and passes it on to the parsers below this one
        self.about = about
        self._load = load
        self._columns = columns
        self._mixing = False

    @cached_property
    def verb(self) -> SubVerb:
        """The verb. Reading this loads it, and adds its options to this parser."""
        verb = self._load()
        self.add_argument(*HELP, action="help", help="show this help")
        self.description = verb.help and f"{verb.help[0].upper()}{verb.help[1:]}."
        if verb.configure is not None:
            verb.configure(self)
        return verb

    @cached_property
    def parts(self) -> "Mapping[str, VerbParser]":
        """The parsers of this verb's sub-verbs."""
        if not self.verb.subverbs:
            return {}
        adding = self.add_subparsers(prog=self.prog, title="what", metavar="WHAT", parser_class=VerbParser)
        self.epilog = f"'{self.prog} WHAT -h' tells more of one."
        return {
            name: adding.add_parser(
                name, help=part.help, about=part.help, load=partial(_loaded, part), columns=self._columns
            )
            for name, part in self.verb.subverbs.items()
        }

    @property
    def own_actions(self) -> Sequence[argparse.Action]:
        """Options and arguments that people see, in their order."""
        return [] if self.parts else [action for action in self._actions if action.help != argparse.SUPPRESS]

    def parse_known_args(  # type: ignore[override]  # argparse has overloads for namespaces of other types
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parses arguments and options in any order; an unknown one is an error of this verb, not of the whole tool."""
        if self._mixing:  # Python 3.13.0 calls this method again from within
            return super().parse_known_args(args, namespace)
        given = list(args or [])
        if self.parts:
            return super().parse_known_args(self._with_part(given), namespace)
        self._mixing = True
        try:
            found, unknown = self.parse_known_intermixed_args(given, namespace)
        finally:
            self._mixing = False
        if unknown:
            self._unknown(unknown)
        found.parser = self
        return found, []

    def format_usage(self) -> str:
        assert self.parts is not None, "the verb is loaded by now, which may have a usage of its own"
        return self._broken(super().format_usage())

    def format_help(self) -> str:
        assert self.parts is not None, "as above"
        width = self._columns or UNBROKEN
        shown = "".join(f"\n  {line}\n{fold(f'      {about}', width, indent=6)}" for line, about in self.verb.examples)
        usage, blank, rest = super().format_help().partition("\n\n")
        return self._broken(usage) + blank + rest + (f"\nexamples:{shown}\n" if shown else "")

    def _broken(self, usage: str) -> str:
        """Returns `usage`, broken into lines that fit if the verb has written it; argparse has broken a usage that it
        made."""
        if self.usage is None:
            return usage
        room = (self._columns or UNBROKEN) - len(USAGE_WORD)
        return USAGE_WORD + fold(usage.removeprefix(USAGE_WORD), room, indent=len(USAGE_WORD))

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        super().exit(status, message and harmless(message))

    def error(self, message: str) -> NoReturn:
        text = fold(f"{self.prog}: {message}", self._columns or UNBROKEN)
        self.exit(USAGE, f"{text}\n{self.format_usage()}see '{self.prog} -h'\n")

    def _with_part(self, given: list[str]) -> list[str]:
        word = given[0] if given else ""
        if self.verb.default is not None and (not word or word.startswith("-")) and word not in HELP:
            return [self.verb.default, *given]
        if word not in self.parts and word not in HELP:
            self.no_such_part(word)
        return given

    def no_such_part(self, word: str) -> NoReturn:
        self.refuse_uninstalled(f"{self.prog.removeprefix(f'{PROGRAM} ')} {word}")
        if word and not word.startswith("-"):
            near = nearest(word, self.parts)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(self.parts)}"
            self.error(f"no {word!r}: {hint}")
        self.error(f"name what to do first: {', '.join(self.parts)}" + (f"; {word} comes after it" if word else ""))

    def refuse_uninstalled(self, verb: str) -> None:
        """Ends with an error if `verb` is one of a part that is not installed."""
        if verb in RELEASED:
            from synapsectl.upgrading.extras import for_this_installer
            from synapsed.parts.outside import missing

            how = for_this_installer(missing(RELEASED[verb]))
            self.error(f"{verb!r} belongs to the part {RELEASED[verb]}, which {how}")

    def _unknown(self, unknown: list[str]) -> NoReturn:
        text, option = " ".join(unknown), unknown[0].partition("=")[0]
        near = nearest(option, self._option_string_actions) if option.startswith("-") else []
        if near:
            text += f"; did you mean {' or '.join(near)}?"
        elif option.startswith("-") and self.verb.takes_rest:
            text += f"\nwhat is not for {PROGRAM} comes after --: {self.prog} … -- {text}"
        elif self.verb.takes_rest and "--name" in self._option_string_actions:
            text += f"\na name of its own is given with --name: {self.prog} … --name {option}"
            text += f"\nwhat is for the program comes after --: {self.prog} … -- {' '.join(unknown)}"
        self.error(f"unrecognized arguments: {text}")


class _Tool(VerbParser):
    """The parser before the verb."""

    def format_help(self) -> str:
        return overview(self._columns)

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, fold(f"{PROGRAM}: {message}\n", self._columns or UNBROKEN))

    def no_such_part(self, word: str) -> NoReturn:
        self.refuse_uninstalled(word)
        near = [SYNONYMS[word]] if word in SYNONYMS else nearest(word, self.parts)
        hint = f"did you mean {' or '.join(near)}?" if near else f"see '{PROGRAM} -h'"
        self.error(f"no verb {word!r}: {hint}")


def _loaded(part: Verb | SubVerb) -> SubVerb:
    if isinstance(part, SubVerb):
        return part
    command = part.load()
    subverbs = getattr(command, "SUBVERBS", {})
    return SubVerb(
        part.help,
        getattr(command, "configure", None),
        getattr(command, "run", None),
        part.examples(),
        bool(getattr(command, "TAKES_REST", False)),
        bool(getattr(command, "TAKES_BYTES", False)),
        {**subverbs, **({} if not subverbs else subverbs_of_parts(part.module))},
        getattr(command, "DEFAULT", None),
    )
