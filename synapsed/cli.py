"""`synapsed run | check-config | repair | version`, and the verbs that parts add. Everything heavy is imported when its
verb is used."""

import argparse
import gc
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

from synapsed import __version__
from synapsed.model.released_names import DAEMON_VERBS
from synapsed.parts.outside import missing
from synapsed.process.first_process import leave_to_a_child
from synapsed.process.installed import commit, with_commit
from synapsed.shared.counts import counted

if TYPE_CHECKING:
    from synapsectl.verbs import DaemonVerb
    from synapsed.config.config import AgentConfig
    from synapsed.errors import SynapsedError
    from synapsed.profiles.library import ProfileLibrary

EXIT_OK = 0
EXIT_FAILED = 1
"""Another daemon runs, or this one could not go on."""
EXIT_CONFIG = 2
"""Usage, or a configuration that cannot be read."""
EXIT_PIPE_CLOSED = 141
"""Exit code as after SIGPIPE: the reader of the output has enough."""
NEXT: Final = """synapsed is the daemon; what you type is synapsectl:
  synapsectl start claude    # an agent in this folder; the daemon is started where none runs
  synapsectl                 # who needs you; 'synapsectl -h' lists what else there is
No account at hand: 'synapsectl start dummy'. In the foreground: 'synapsed run'; 'synapsed -h' has more."""
"""Text for a command line without a verb."""
SWITCH_S = 0.0005
"""Seconds for which a computing thread may keep the interpreter from the event loop. The default is tenfold, and the
loop waits that long again after each system call: twenty short calls beside a busy thread took a tenth of a second."""
OWN: Final = ("run", "check-config", "repair", "version")
"""Verbs that need no part."""


def command_line(asked: str | None = None, *, parts: bool = True) -> argparse.ArgumentParser:
    """Returns the parser of `synapsed`; `parts` adds the verbs of parts. Only the module of the verb `asked` is loaded,
    or the modules of all verbs if it is None."""
    added = _of_parts() if parts else {}
    parser = argparse.ArgumentParser(prog="synapsed", description="The daemon that keeps command-line agents running.")
    listed = [name for name, verb in added.items() if not verb.internal]
    verbs = parser.add_subparsers(dest="verb", required=True, metavar=" | ".join([*OWN[:1], *listed, *OWN[1:]]))
    run = verbs.add_parser("run", help="run in the foreground until SIGTERM or SIGINT")
    run.add_argument("--keep-agents", action="store_true", help="leave the agents running when the daemon ends")
    run.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="info")
    run.add_argument("--log-file", action="store_true", help="log to state/logs/synapsed.log, rotated, not to stderr")
    run.add_argument(
        "--late-port",
        action="store_true",
        help="start without the main port if another program has it, and take it once it is free"
        " (a service always does)",
    )
    run.add_argument(
        "--service",
        choices=["systemd"],
        help="run as its user service: each agent is a unit of its own, which SIGTERM leaves running; stopping the "
        "service stops them, restarting it does not",
    )
    check = verbs.add_parser("check-config", help="read configuration and profiles, say what is wrong, start nothing")
    check.add_argument("--json", action="store_true", help="print what there is as a JSON document")
    verbs.add_parser("repair", help="save what can be read of a damaged database; 'synapsectl doctor --repair'")
    for name, verb in added.items():
        of_part = verbs.add_parser(name, help=verb.help)
        if verb.log:
            of_part.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="info")
            log = f"log to state/logs/{verb.log}.log, not to stderr"
            of_part.add_argument("--log-file", action="store_true", help=log)
        if asked is None or name == asked:  # so a part that cannot be loaded breaks its own verb only
            import_module(verb.module).configure(of_part)
    told = verbs.add_parser("version", help="print the version")
    told.add_argument("--json", action="store_true", help="with the versions of what it keeps and speaks")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a verb; returns the exit code of `synapsed`."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given[:1] == ["--version"]:
        given[0] = "version"
    own = bool(given) and given[0] in OWN
    if given and not own and (part := DAEMON_VERBS.get(given[0])) is not None and given[0] not in _of_parts():
        print(f"synapsed: {given[0]!r} belongs to the part {part}, which {missing(part)}", file=sys.stderr)
        return EXIT_CONFIG
    if not given:
        print(NEXT, file=sys.stderr)
        return EXIT_CONFIG
    args = command_line(next(iter(given), ""), parts=not own).parse_args(given)
    if (reason := _why_not_here(args)) is not None:
        print(f"synapsed: {reason}", file=sys.stderr)
        return EXIT_CONFIG
    if args.verb == "version":
        print(json.dumps(versions()) if args.json else f"synapsed {with_commit(__version__, commit())}")
        return EXIT_OK
    if args.verb == "repair":
        return _repair()
    if args.verb not in OWN:
        verb = _of_parts()[args.verb]
        return _of_part(verb, args) if verb.log else _printed(partial(_of_part, verb), args)
    return _run(args) if args.verb == "run" else _check_config(as_json=args.json)


def _why_not_here(args: argparse.Namespace) -> str | None:
    """Returns a sentence that says why the verb cannot run in this environment; None if it can."""
    from synapsed.config.sockets import NoHome, settle_home

    try:
        settle_home(os.environ)
    except NoHome as error:
        return str(error)
    only_reads = args.verb in ("version", "check-config") or (
        args.verb not in OWN and getattr(args, "what", None) in _of_parts()[args.verb].reads
    )
    if only_reads:
        return None
    from synapsed.config.paths import Paths
    from synapsed.process.file_owners import why_not_as_root

    paths = Paths.from_environ()
    return why_not_as_root((paths.state, paths.config, paths.a2a), os.environ)


def _printed(verb: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    """Returns the exit code of a verb that prints, to a pipe that may be closed before the end."""
    try:
        code = verb(args)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes it once more at its end
        return EXIT_PIPE_CLOSED
    return code


def versions() -> dict[str, object]:
    """Returns the versions. `store`: the schema that this program writes, and the oldest program's (by its schema) that
    works on it then; `keeper`: versions of the protocol that it speaks; `launch`: its launch specifications' format."""
    from synapsed.keeper import frames
    from synapsed.keeper.spec import FORMAT
    from synapsed.store.schema import MIGRATIONS, OLDEST

    return {
        "version": __version__,
        "commit": commit(),
        "store": {"schema": len(MIGRATIONS), "oldest": OLDEST},
        "keeper": {"protocol": frames.VERSION, "oldest": frames.OLDEST_VERSION, "launch": FORMAT},
    }


def _run(args: argparse.Namespace) -> int:
    leave_to_a_child()
    from synapsed.process.parent_attributes import make_room, measured

    started_with = measured()
    os.umask(0o077)
    gc.disable()  # importing leaves no garbage behind, but looking for it takes a tenth of the time
    import asyncio

    from synapsed.config.paths import Paths
    from synapsed.daemon import Daemon
    from synapsed.errors import SynapsedError
    from synapsed.model.attributes import ProcessAttributes
    from synapsed.process.logging import configure
    from synapsed.process.open_files import keep_private, raise_limit

    gc.freeze()  # the present objects stay: they are not scanned again and again
    gc.enable()
    sys.setswitchinterval(SWITCH_S)
    paths = Paths.from_environ()
    configure(
        args.log_level, file=paths.logs / "synapsed.log" if args.log_file else None, agents=paths.state / "agents"
    )
    served = args.service is not None
    make_room()
    keep_private(paths.logs)
    daemon = Daemon(
        paths,
        environ=dict(os.environ),
        keep_agents=args.keep_agents or served,
        agent_units=args.service == "systemd",
        started_with=ProcessAttributes.model_validate(started_with),
        files=raise_limit(),
        late_port=args.late_port or served,
        takes_orphans=True,
    )
    try:
        asyncio.run(daemon.run())
    except SynapsedError as error:
        return _refuse(error)
    return EXIT_OK


def _of_parts() -> "Mapping[str, DaemonVerb]":
    from synapsectl.verbs import daemon_verbs

    return daemon_verbs()


def _of_part(verb: "DaemonVerb", args: argparse.Namespace) -> int:
    from synapsectl.verbs import Surroundings
    from synapsed.config.config_files import load_config
    from synapsed.config.paths import Paths
    from synapsed.errors import SynapsedError
    from synapsed.parts.loading import config_model, stand_ins
    from synapsed.process.service_manager import ServiceNotifier

    os.umask(0o077)
    paths = Paths.from_environ()
    if verb.log:
        from synapsed.process.logging import configure
        from synapsed.process.open_files import raise_limit

        raise_limit()
        configure(args.log_level, file=paths.logs / f"{verb.log}.log" if args.log_file else None)
    around = Surroundings(
        paths,
        configuration=lambda: load_config(paths, config_model()),
        notifier=ServiceNotifier(os.environ),
        stand_ins=partial(stand_ins, paths.state),
    )
    try:
        failed = import_module(verb.module).run(args, around)
    except SynapsedError as error:
        return _refuse(error, as_json=verb.internal or getattr(args, "json", False))
    return EXIT_FAILED if failed else EXIT_OK


def _repair() -> int:
    """Prints one JSON document: `{"database", "sound"}`, and for a damaged one `damaged` (its new path), `rows`,
    `filled` and `lost` (`store.salvage`)."""
    from dataclasses import asdict

    from synapsed.config.paths import Paths
    from synapsed.errors import SynapsedError
    from synapsed.process.state_lock import lock_home, prepare_directories
    from synapsed.store.backups import newest_first
    from synapsed.store.salvage import is_sound, salvage

    paths = Paths.from_environ()
    os.umask(0o077)
    try:
        prepare_directories(paths)
        with lock_home(paths):
            told: dict[str, object] = {"database": str(paths.database)}
            if told.setdefault("sound", is_sound(paths.database)):
                print(json.dumps(told))
                return EXIT_OK
            saved = asdict(salvage(paths.database, newest_first(paths.backups)))
    except SynapsedError as error:
        return _refuse(error)
    print(json.dumps(told | saved | {"damaged": str(saved["damaged"])}))
    return EXIT_OK


def _check_config(*, as_json: bool) -> int:
    from synapsed.agents.parking import check_parking
    from synapsed.config.config_files import load_config
    from synapsed.config.paths import Paths
    from synapsed.errors import ConfigError, SynapsedError, UnknownProfile
    from synapsed.parts.loading import config_model, findings, lacking, stand_ins
    from synapsed.profiles.library import ProfileLibrary

    paths = Paths.from_environ()
    try:
        config = load_config(paths, config_model())
        profiles = ProfileLibrary.standard(paths.user_profiles, partial(stand_ins, paths.state))
        for name, agent in config.agents.items():
            try:
                profiles.get(agent.profile or name)
            except UnknownProfile as error:
                saved = paths.agents_d / f"{name}.toml"
                place = saved if saved.exists() else f"{paths.config_file}: agents.{name}"
                raise ConfigError(f"{place}: {error.message}") from None
        check_parking(config, profiles, paths)
        agents = [_agent_facts(name, agent, profiles) for name, agent in config.agents.items()]
    except SynapsedError as error:
        return _refuse(error)
    wanting = lacking(config, paths)
    if as_json:
        api = config.api
        listen = {"address": api.address, "port": api.port}
        told = {"listen": listen, "proxy": config.outgoing.place, "agents": agents, "missing": wanting}
        found = [*findings(config, paths.state), *_not_counting(profiles)]
        print(json.dumps({**told, "api": api.model_dump(mode="json"), "findings": found}))
    else:
        for sentence in wanting:
            print(f"synapsed: {sentence}", file=sys.stderr)
        counts = f"{counted(len(config.agents), 'agent')}, {counted(len(profiles.names()), 'profile')}"
        print(f"{paths.config_file}: fine; {counts}")
    return EXIT_OK


def _not_counting(profiles: "ProfileLibrary") -> list[tuple[str, str, str, str]]:
    """Returns the findings of `doctor` about profiles that a person took from elsewhere and that do not count."""
    return [
        ("profiles", "note", f"the profile {name} that was taken does not count: {why}", "")
        for name, why in profiles.left_out.items()
    ]


def _agent_facts(name: str, agent: "AgentConfig", profiles: "ProfileLibrary") -> dict[str, object]:
    profile = profiles.get(agent.profile or name)
    return {
        "name": name,
        "profile": profile.name,
        "command": agent.command or profile.argv(sys.executable)[0],
        "autostart": agent.autostart,
        "version": profile.version and {**profile.version.model_dump(mode="json"), "verified": profile.verified},
    }


def _refuse(error: "SynapsedError", *, as_json: bool = False) -> int:
    from synapsed.errors import EXIT_CODES

    if as_json:
        print(json.dumps({"error": {"code": error.code, "message": error.message, "details": error.details}}))
    print(f"synapsed: {error.message}", file=sys.stderr)
    if isinstance(error.__cause__, PermissionError) and (foreign := _foreign()):
        print(f"synapsed: {foreign[0]}; '{foreign[1]}' gives it back", file=sys.stderr)
    return EXIT_CONFIG if EXIT_CODES.get(error.code) == EXIT_CONFIG else EXIT_FAILED


def _foreign() -> tuple[str, str] | None:
    """Returns the names of files of other users in the daemon's folders (as after a `sudo`), and the command that gives
    them back; None if there are no such files."""
    from synapsed.config.paths import Paths
    from synapsed.process.file_owners import told_foreign

    paths = Paths.from_environ()
    return told_foreign((paths.state, paths.config, paths.run))
