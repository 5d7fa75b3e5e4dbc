"""`synapsed profile WHAT`: shows, checks, drafts and proves profiles. It needs no daemon.

`synapsectl profiles show|check|new`, and the making and taking of bundles, run it in a process of its own.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

from synapsed import __version__, own_python
from synapsed.errors import ConfigError
from synapsed.interfaces import validate_name
from synapsed.profiles.library import Profile, ProfileLibrary, order_of
from synapsed.shared.regex import regex

if TYPE_CHECKING:
    from synapsectl.verbs import Surroundings

_BY_NAME = regex(r"-m\W+synapsectl\b")
"""Command of a synapsed MCP server that Python would find by its name: Python looks for that name in the present folder
first."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["show", "check", "new", "file", "prove"])
    parser.add_argument("name", help="show, new, file: a profile's name; check: a profile's file; prove: a folder")
    parser.add_argument("--size", type=int, nargs=2, metavar=("COLS", "ROWS"), help="new: of the screen on stdin")
    parser.add_argument("--agent", default="", help="new: whose screen that is")
    parser.add_argument("--command", type=json.loads, default=[], help="new: what starts the program, a JSON array")
    parser.add_argument("--json", action="store_true", help="print a JSON document")
    parser.add_argument("--against", metavar="RECORDING", help="check: how it reads a recording, or a folder of them")
    parser.add_argument("--since", metavar="X", help="prove: the version of synapsed that had them")
    parser.add_argument("--no-recordings", action="store_true", help="prove: without reading the recordings")
    parser.add_argument("--version", dest="release", metavar="X", help="as it counts for that version of the program")


def run(args: argparse.Namespace, around: "Surroundings") -> bool:
    """Returns True if a profile does not read a recording as expected. Raises SynapsedError."""
    args.json = args.json or args.what in ("file", "prove")  # errors are JSON, too
    if args.release is not None and order_of(args.release) is None:
        raise ConfigError(f"--version: {args.release!r} is no version: numbers with dots between them")
    doing: Mapping[str, Callable[[argparse.Namespace, Surroundings], bool]] = {
        "show": _show,
        "check": _check,
        "new": _new,
        "file": _file,
        "prove": _prove,
    }
    return doing[args.what](args, around)


def _show(args: argparse.Namespace, around: "Surroundings") -> bool:
    import tomli_w

    whole = ProfileLibrary.one(around.paths.user_profiles, args.name, around.stand_ins)
    profile = whole.at(args.release)
    if (drift := profile.drift(args.release)) is not None:
        print(f"{args.name}: {drift}", file=sys.stderr)
    shown = profile.model_dump(mode="json", exclude_none=True, exclude={"name", "source"})
    print(json.dumps(shown) if args.json else tomli_w.dumps(shown).removesuffix("\n"))
    return False


def _check(args: argparse.Namespace, _: "Surroundings") -> bool:
    from dataclasses import asdict

    from synapsed.parts.profile_tools.recordings import prove, read_recordings

    checked = ProfileLibrary.builtin().check(Path(args.name))  # faults in the user's other files do not count
    profile = checked.at(args.release)
    proofs = prove(profile, read_recordings(Path(args.against))) if args.against is not None else []
    told = _advice(profile)
    if which(program := profile.argv(sys.executable)[0]) is None:
        hint = ": arguments stand in 'args'" if " " in program.strip() else ""
        told.append(f"its program {program!r} is not on this shell's PATH{hint}")
    told += [f"differs {variant.range}: {', '.join(sorted(variant.overrides))}" for variant in checked.versions]
    differences = [f"{proof.name}: {each}" for proof in proofs for each in proof.differences]
    if args.json:
        read = {"recordings": [asdict(proof) for proof in proofs]} if args.against is not None else {}
        print(json.dumps({"file": args.name, "advice": told, **read}))
        return bool(differences)
    for mark in (f"{proof.name}: {json.dumps(mark)}" for proof in proofs for mark in proof.marks):
        print(mark)
    for line in (*told, *differences):
        print(f"{args.name}: {line}", file=sys.stderr)
    if not differences:
        print(f"{args.name}: fine{', with advice' if told else ''}")
    return bool(differences)


def _advice(profile: Profile) -> list[str]:
    """Returns advice about settings of `profile` that are valid but will not work well."""
    told = []
    if profile.composer.line is None and not profile.ready.known:
        told.append("nothing shows that it is ready: give [composer] line, or a sign under [ready]")
    if profile.composer.line is not None and profile.composer.at_cursor and profile.composer.line.search(""):
        told.append("[composer] line matches an empty line too: it would be taken for ready while it works")
    whole = profile.composer.line is not None and not profile.composer.at_cursor
    if whole and not profile.channels and not profile.busy.known:
        told.append("nothing shows that it is busy: a turn then ends when the composer has been empty for a while")
    if whole and not profile.model:
        told.append("other agents cannot write to it: say 'model = true' where a model reads what is typed")
    if profile.interrupt.keys is None and profile.interrupt.signal is None:
        told.append("nothing interrupts it: give [interrupt] keys or signal")
    for table, keys in (("interrupt", [profile.interrupt.keys or ""]), ("exit", profile.exit.keys)):
        if plain := [text for text in keys if text and text.isprintable()]:
            told.append(f'[{table}] types the letters {plain[0]!r}; a key is written as in "\\u0003" for ctrl-c')
    if _BY_NAME.search(json.dumps([profile.mcp.args, profile.mcp.files])):
        told.append('[mcp] would run a synapsectl of the agent\'s folder: write "{mcp}" for "-m", "synapsectl", "mcp"')
    resume = profile.resume
    if resume.args and resume.needs_conversation and not profile.channels and not resume.fresh_args:
        told.append("[resume] needs a conversation's id, and no channel or fresh_args gives one")
    return told


def _file(args: argparse.Namespace, around: "Surroundings") -> bool:
    """Prints the path of the complete file of a profile."""
    own = around.paths.user_profiles / f"{args.name}.toml"
    if ProfileLibrary.builtin().find(args.name) is not None and own.is_file():
        raise ConfigError(f"{own} overrides the profile that comes with synapsed: give a file with a whole profile")
    print(json.dumps({"file": ProfileLibrary.standard(own.parent).get(args.name).source}))
    return False


def _prove(args: argparse.Namespace, around: "Surroundings") -> bool:
    """Prints the findings about profiles that a person must see before they replace built-in ones."""
    from synapsed.parts.profile_tools.proving import prove_folder

    found = prove_folder(
        Path(args.name),
        args.since or __version__,
        user=around.paths.user_profiles,
        now=around.stand_ins,
        recorded=not args.no_recordings,
    )
    print(json.dumps(found.document()))
    return False


def _new(args: argparse.Namespace, around: "Surroundings") -> bool:
    """Writes a profile from the screen on stdin, but replaces no file."""
    path = around.paths.user_profiles / f"{args.name}.toml"
    validate_name(args.name)
    if ProfileLibrary.builtin().find(args.name) is not None:
        raise ConfigError(f"{args.name!r} is a built-in profile: choose another name", file=str(path))
    text = _draft(args, str(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{path} is there already: choose another name", file=str(path)) from None
    except OSError as error:
        with suppress(OSError):
            path.unlink()  # so that the same command works once there is room
        raise ConfigError(f"{path} cannot be written: {error.strerror}", file=str(path)) from None
    ProfileLibrary.builtin().check(path)
    print(json.dumps({"file": str(path)}) if args.json else path)
    return False


def _draft(args: argparse.Namespace, file: str) -> str:
    """Returns the text of a profile for the screen on stdin. Raises ConfigError."""
    from synapsed.parts.profile_tools.drafting import ASKS, only_drafts

    cols, rows = args.size or (120, 40)
    head = json.dumps({"cols": cols, "rows": rows, "command": args.command, "agent": args.agent})
    done = subprocess.run(
        own_python.command("synapsed.parts.profile_tools.drafting"),
        env=own_python.bare_environment(),
        input=head.encode() + b"\n" + sys.stdin.buffer.read(),
        capture_output=True,
        check=False,
    )
    if done.returncode == ASKS:
        words = "it asks something on that screen: answer it, and write the profile from the screen with its composer"
        raise ConfigError(words, file=file)
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0 or not only_drafts(text, args.command):
        raise ConfigError("the screen cannot be drawn", file=file)
    return text
