"""`synapsectl input TASK|AGENT TEXT`: answers the question of a task or an agent."""

import argparse
import sys

from synapsectl.asking import ask_hidden, ask_line
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, ApiError, UsageError
from synapsectl.messages import read_all
from synapsectl.prompts import NOT_TAKEN, WhoAsks, answer, asked, show_prompt, tell_hands
from synapsectl.reach import asks_at

EXAMPLES = (
    ("synapsectl input claude 2", "the option with this key"),
    ("synapsectl input 1f0c9a2b 'use the other branch'", "words, where the question takes them"),
)

TAKES_REST = True
NO_ANSWER = "there is no answer: synapsectl input TASK|AGENT TEXT"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} (TASK | AGENT) [options] [--] [TEXT | -]"
    parser.add_argument(
        "words", nargs="+", metavar="TASK|AGENT TEXT", help="who asks, and the answer or an option's key"
    )
    parser.add_argument("--prompt-id", metavar="ID", help="answer only if this very prompt is still asked")
    parser.add_argument("--json", action="store_true", help="print the daemon's answer as a JSON document")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    words = [*args.words, *(args.rest or [])]
    ctx, name, host = asks_at(ctx, words.pop(0))
    target = asked(ctx.client, name)
    text = " ".join(words)
    if not words or text == "-":
        text = _read(ctx, target)
    try:
        given = answer(ctx.client, target, text, args.prompt_id or (target.prompt or {}).get("prompt_id"))
    except ApiError as error:
        if error.code == NOT_TAKEN:
            tell_hands(ctx, target, host)
        raise
    ctx.out.either(given, as_json=args.json, note=f"{target.name}{host} was answered")
    return DONE


def _read(ctx: CommandContext, target: WhoAsks) -> str:
    """Returns a line from the terminal, where the question is shown first, hidden for a password; or all of stdin."""
    if not sys.stdin.isatty():
        if not (text := read_all(sys.stdin.buffer, "the answer")):
            raise UsageError(NO_ANSWER)
        return text.removesuffix("\n")
    show_prompt(ctx.out, target.prompt)
    if target.prompt and target.prompt["type"] == "password":
        try:
            return ask_hidden(f"{target.name}: ")
        except EOFError:
            sys.stderr.write("\n")
            raise UsageError(NO_ANSWER) from None
    line = ask_line(sys.stderr, f"{target.name}: ")
    if not line:
        raise UsageError(NO_ANSWER)
    return line.removesuffix("\n")
