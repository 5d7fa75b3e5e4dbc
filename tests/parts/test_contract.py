"""What the kernel knows of its parts, and what they use of it. Each of these only shrinks."""

import re
import sys
from pathlib import Path

import grimp
import pytest

from scripts.folders import FOLDERS, OUTSIDE
from scripts.house import LIBRARIES
from synapsed import kernel
from synapsed.parts.list import NAMES
from synapsed.parts.loading import faces

PACKAGE = Path(kernel.__file__).parent
PARTS = {**{name: f"synapsed.parts.{name}" for name in NAMES}, **OUTSIDE}
"""All parts of this project, with the package of each."""

KERNEL_MAX = 25
"""Modules of the kernel that all parts together use."""

ROOTS = {"synapsed.cli", "synapsed.daemon"}
"""Who puts the parts together."""

WORDS = {
    "a2a": r"(?<![\w-])(?<!synapsed\.)a2a(?!_types)|PushRecord|AgentCard\b",
    "attention": r"\[notify|NotifyConfig|SinkTested|UnknownSink|PersonInbox|web.?push|vapid|push.key",
    "elsewhere": r"External(Agent|Error)|\bexternals\b|external agent|(?<!\.)external:|\bssh\b|courier|\[hosts\]",
    "moods": r"mood|emotion",
    "fleet": r"fleet|\bnats\b",
    "answer_blocks": r"AnswerBlocks|StreamParser|FenceReader|PlainReader|markdown_it",
    "work_events": r"ToolEvents|ToolCalls\b|ShownCalls|OwnTurns|UsedTurns",
    "approvals": r"Approvals?Config|Approvals\b|Policy\.of",
    "person_settings": r"person_settings|KEYS_BOUND",
    "usage_limits": r"usage.?limit|LimitRecord|AccountSpec|LimitPattern|account does not work",
    "pictures": r"\bPIL\b|pillow|svg\(",
    "history": r"history\.db|/control/history|/control/usage|\[history\]",
    "telemetry": r"telemetry|\bmetrics\b|otlp",
    "rules": r"RuleConfig|RuleFired|\[\[rule\]\]|\[webhooks|\bRuler\b|WebhookConfig\b",
    "schedules": r"\bschedule[sd]?\b|ScheduleCame|UnknownSchedule",
    "mentions": r"mentions",
    "app_server": r"app.server",
    "session_server": r"session.server",
    "editors": r"editor that speaks|synapsectl acp",
    "worktrees": r"worktree",
    "profile_tools": r"\bbundles?\b|ed25519|only_drafts|RecordedRun|prove_folder|synapsed_report|should_be\b",
    "live_screens": r"LiveScreens|screen/live",
    "hooks": r"HookChannel|MessagePieces|TurnRead\b",
    "registry": r"RegistryFiles|RegistryFollower|\.registry\b",
    "openapi": r"openapi\.json|openapi_document",
    "web": r"\bdevices?\b|\bpairing\b|tls_listen|access\.json",
}

WORD_LINES = {
    # By part and file: lines of the kernel with its words. `emotionUpdate` is what an agent may report, too.
    "moods": {
        "api/request_models.py": 4,
        "interfaces/storage.py": 1,
        "model/events/__init__.py": 2,
        "model/events/kinds.py": 4,
        "store/store.py": 1,
    },
    # A code by which the tool knows its exit code; what two parts keep and tell by.
    "attention": {"errors.py": 2},
    "a2a": {
        # Released: what is typed before an agent's message, the home directory, a section, a media type, an event's
        # word, and the form of a profile's skills.
        "agents/briefing.py": 7,
        "api/response_models.py": 1,
        "api/security.py": 1,
        "cli.py": 1,
        "config/config.py": 2,
        "config/paths.py": 6,
        "model/events/kinds.py": 2,
        "model/sender.py": 3,
        "profiles/profile.py": 1,
        "supervisor/reload.py": 2,
        "tasks/prompt_text.py": 9,
        # A migration's comment.
        "store/schema.py": 1,
        # `[a2a.push]` is for all who post.
        "daemon.py": 1,
        "outgoing/__init__.py": 1,
        "outgoing/poster.py": 1,
        "outgoing/posting.py": 1,
        "outgoing/screening.py": 1,
    },
    # Codes by which the tool knows its exit code; what is typed before a message; names of secrets.
    "elsewhere": {"errors.py": 6, "model/masking.py": 4, "pty/foreground.py": 1, "tasks/prompt_text.py": 1},
    # A code by which the tool knows its exit code; where files stand that messages name; the API's words; migrations.
    "fleet": {
        "api/routes/agents.py": 1,
        "config/paths.py": 1,
        "errors.py": 4,
        # Its tables, and what a repair takes of them.
        "store/salvage.py": 12,
        "store/schema.py": 12,
    },
    "answer_blocks": {},
    "work_events": {},
    "approvals": {},
    "person_settings": {},
    "usage_limits": {
        # Released: words of the API; tables of profiles, as the part's models, and a text that they give.
        "interfaces/daemon_control.py": 1,
        "model/agent.py": 2,
        "profiles/profile.py": 3,
        "profiles/screen_spec.py": 2,
        "profiles/setting_spec.py": 4,
    },
    "pictures": {},
    # A file of git's in a worktree.
    "worktrees": {"process/installed.py": 1},
    "profile_tools": {},
    "mentions": {},
    # Names of adapters in profiles.
    "app_server": {"channels/launch_additions.py": 1, "profiles/channel_spec.py": 2},
    "openapi": {},
    "hooks": {},
    "live_screens": {},
    "registry": {},
    "session_server": {"profiles/channel_spec.py": 3},
    "editors": {},
    "history": {},
    "telemetry": {},
    "rules": {"model/events/__init__.py": 2, "model/events/kinds.py": 3},
    # What stays without it: the log's rows, released codes and words of the API.
    "schedules": {
        "api/routes/control.py": 1,
        "errors.py": 2,
        "model/events/__init__.py": 2,
        "model/events/kinds.py": 6,
        "store/salvage.py": 6,
        "store/schema.py": 4,
    },
    "web": {
        # An error's text that was released; a sender's name that was.
        "config/config.py": 1,
        "tasks/sender_verdict.py": 2,
        # The null device, and disks.
        "process/logging.py": 1,
        "own_python.py": 1,
        "store/acts.py": 1,
    },
}


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*FOLDERS.keys() - {"synapsectl"}, include_external_packages=True)


def test_a_part_is_named_as_its_folder() -> None:
    assert [face.name for face in faces()] == list(PARTS)


@pytest.mark.parametrize("part", PARTS)
def test_the_kernel_imports_no_part(part: str, graph: grimp.ImportGraph) -> None:
    whole = PARTS[part]
    own = {whole, *graph.find_descendants(whole)}
    importers = {other for module in own for other in graph.find_modules_that_directly_import(module)}
    assert importers <= own, "a part is loaded by its name in the list, and by nobody else"


def test_only_who_puts_them_together_knows_the_list(graph: grimp.ImportGraph) -> None:
    assert graph.find_modules_that_directly_import("synapsed.parts.loading") == ROOTS


def test_parts_use_what_the_kernel_says_that_they_may(graph: grimp.ImportGraph) -> None:
    parts = graph.find_descendants("synapsed.parts") - {
        f"synapsed.parts.{one}" for one in ("list", "loading", "outside")
    }
    parts |= {one for package in OUTSIDE.values() for one in graph.find_descendants(package)}
    used = {other for part in parts for other in graph.find_modules_directly_imported_by(part)}
    used = {one for one in used if one.startswith("synapsed.") and not one.startswith(("synapsed.parts.", *LIBRARIES))}
    told = {f"synapsed.{name}" for name in re.findall(r"`([\w.]+)`", (kernel.__doc__ or "").partition("use:")[2])}
    allowed = {one for one in used if one in told | {"synapsed.kernel"} or one.startswith("synapsed.model.")}
    assert used - allowed == set(), "a module that no part used before: say so in the docstring of synapsed/kernel.py"
    assert len(used) <= KERNEL_MAX, "take it from what `Kernel` has, or have a room export it"


@pytest.mark.parametrize("part", PARTS)
def test_its_verbs_know_the_tool_only(part: str, graph: grimp.ImportGraph) -> None:
    """And the standard library, and what the daemon shares with it: `synapsectl` starts without what the daemon is made
    of. `segno` draws the code that `web` shows to a phone, and is loaded there."""
    own = {one for one in graph.modules if one.startswith(f"{PARTS[part]}.ctl")}
    used = {other for one in own for other in graph.find_modules_directly_imported_by(one)} - own
    used = {one for one in used if one != "synapsed" and not one.startswith("synapsed.shared.")}
    others = {one for one in used if one.partition(".")[0] not in {"synapsectl", "segno", *sys.stdlib_module_names}}
    assert others == set(), "no third party, and nothing of the daemon's"


@pytest.mark.parametrize("part", PARTS)
def test_the_kernel_has_few_words_of_a_part(part: str) -> None:
    found: dict[str, int] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(("a2a_types/", "parts/")) and name != "model/released_names.py":
            lines = [line for line in path.read_text().splitlines() if re.search(WORDS[part], line, re.IGNORECASE)]
            found |= {name: len(lines)} if lines else {}
    assert found == WORD_LINES[part]
