"""Opens the session of a program on pipes: sends `initialize`, opens a session or continues one, and sets a mode in
which the program asks for permissions. Pure."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from synapsed.model.link import LinkAlert, LinkSession
from synapsed.pipes.commands import PipesCommand, ShowLine, Write
from synapsed.pipes.rpc import objects
from synapsed.profiles.profile import Profile
from synapsed.pty.keyboard import Emit

INITIALIZE: Final = "initialize"
OPEN: Final = "session"
PLAIN: Final = "session.plain"
"""Request for a session without the profile's additions, sent to a program that has refused them."""
LOAD: Final = "session.load"
MODE: Final = "session.mode"

SESSIONS: Final = frozenset({OPEN, LOAD, PLAIN})
"""Requests that open a session."""

PATIENCE_S: Final = 60.0
"""Seconds after which a program that has not opened a session is reported as not answering. It may still open one, for
example if it is being installed."""

REST_S: Final = 1.0
"""Seconds without updates after which a program that continues a conversation is taken to have repeated all of it; some
programs repeat parts even after their response."""

PAUSES: Final = 2
"""The same as a multiple of the longest pause between two such updates: a starved program makes long ones."""

NOT_OPENED: Final = "NO_SESSION"
"""Code of the alert that the program runs but takes no messages."""

REASON_MAX: Final = 300
"""Most characters of a program's reason in an alert."""

NO_TOOLS: Final = "NO_TOOLS"
"""Code of the alert that the program has a session without synapsed's tools."""


class AcpStage(StrEnum):
    """Stages of a program's start."""

    STARTING = "starting"
    OPENING = "opening"
    TELLING = "telling what was said before"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class SessionOpening:
    """Additions of a launch for its program: `session` is merged into the request that opens a session; `brief` is sent
    before the first message of a conversation, as a block of its own."""

    session: Mapping[str, Any] = field(default_factory=dict)
    brief: str | None = None


class AcpOpening:
    """Opens the session of one launch. `session` is the session that an earlier daemon has opened in the same launch;
    `out` gets the commands; `ready` is called when there is a session."""

    def __init__(
        self,
        profile: Profile,
        *,
        cwd: str,
        conversation: str | None,
        session: str | None,
        added: Mapping[str, Any],
        out: deque[PipesCommand],
        ready: Callable[[], None],
    ) -> None:
        self._profile = profile
        self._cwd, self._conversation = cwd, conversation
        self._added = added
        self._out = out
        self._told_ready = ready
        self.stage = AcpStage.READY if session is not None else AcpStage.STARTING
        self.session = session
        self.problem = ""
        self.alerted = False
        """True once the alert NOT_OPENED was sent, until it is over."""
        self._loads = False
        self._tells = False
        """True if an update from the earlier conversation came since the last call of `waited`."""
        self._told_since = 0.0
        """Time of the last call of `waited` after such an update; 0 before the first."""
        self._rest_s = REST_S
        """Seconds without updates after which all was repeated."""
        self._waits_since: float | None = None
        self._refusal = ""
        """Reason for which the program refused a session with the additions."""

    def begin(self) -> None:
        """Sends `initialize`, unless an earlier daemon did so and the program has answered. If it has not answered yet,
        the keeper knows the request's id and does not write it again."""
        if self.stage is AcpStage.STARTING:
            params = {
                "protocolVersion": 1,
                "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
                "clientInfo": {"name": "synapsed", "title": "synapsed", "version": "1"},
            }
            self._request(INITIALIZE, "initialize", params)

    def told(self) -> None:
        """Notes an update from the earlier conversation."""
        self._tells = True

    def answered(self, message: dict[str, Any]) -> bool:
        """Handles a response. Returns True if it is to a request of this class."""
        id_ = message["id"]
        if id_ == INITIALIZE:
            if self.stage is AcpStage.STARTING:
                self._greeted(message)
        elif id_ in SESSIONS:
            self._without_additions(message, id_)
            if self.stage is AcpStage.OPENING:
                self._opened(message, id_)
        elif id_ == MODE:
            if "error" in message:
                self._out.append(ShowLine(f"the program did not take its mode: {words_of(message)}"))
            if self.stage is AcpStage.OPENING:
                self._opened_all()
        else:
            return False
        return True

    def _request(self, id_: str, method: str, params: dict[str, Any]) -> None:
        self._out.append(Write({"id": id_, "method": method, "params": params}, id_))

    def _greeted(self, message: dict[str, Any]) -> None:
        result = message.get("result")
        if not isinstance(result, dict):
            self._fail(f"initialize was refused: {words_of(message)}")
            return
        self.stage = AcpStage.OPENING
        able = result.get("agentCapabilities")
        able = able if isinstance(able, dict) else {}
        sessions = able.get("sessionCapabilities")
        self._loads = able.get("loadSession") is True
        resumes = isinstance(sessions, dict) and sessions.get("resume") is not None
        if self._conversation is not None and (self._loads or resumes):
            method = "session/load" if self._loads else "session/resume"
            self._request(LOAD, method, {**self._given(), "sessionId": self._conversation})
        else:
            self._request(OPEN, "session/new", self._given())

    def _given(self) -> dict[str, Any]:
        return {"mcpServers": [], **self._added, "cwd": self._cwd}

    def _without_additions(self, message: dict[str, Any], id_: str) -> None:
        """Reports a session that was opened without the additions. The next daemon reads the responses again, and
        reports it too."""
        if id_ == OPEN and "error" in message:
            self._refusal = words_of(message)[:REASON_MAX]
        elif id_ == PLAIN and "error" not in message:
            problem = f"its program takes no session with synapsed's tools ({self._refusal})"
            remedy = "its model cannot reach the other agents; 'synapsectl restart' offers them again"
            self._out.append(Emit(LinkAlert(NO_TOOLS, f"{problem}: {remedy}", "begins")))

    def _opened(self, message: dict[str, Any], id_: str) -> None:
        result, loaded = message.get("result"), id_ == LOAD
        if loaded and "error" in message:
            # The id of the new session, in LinkSession, shows the agent that its conversation is a new one.
            self._request(OPEN, "session/new", self._given())
            return
        if id_ == OPEN and "error" in message and self._added:
            self._out.append(ShowLine(f"the program refused synapsed's additions to the session: {words_of(message)}"))
            self._request(PLAIN, "session/new", {"mcpServers": [], "cwd": self._cwd})
            return
        if loaded:
            self._tells = self._loads
        session = self._conversation if loaded else result.get("sessionId") if isinstance(result, dict) else None
        if not isinstance(session, str):
            self._fail(f"no session was opened: {words_of(message)}")
            return
        self.session = session
        offered = result.get("modes") if isinstance(result, dict) else None
        mode = self._mode(offered if isinstance(offered, dict) else {})
        if mode is None:
            self._opened_all()
        else:
            self._request(MODE, "session/set_mode", {"sessionId": session, "modeId": mode})

    def _mode(self, offered: dict[str, Any]) -> str | None:
        """Returns the first of the profile's modes (in which the program asks for permissions) that the program offers;
        None if it offers none of them, or is in that mode already."""
        there = [each.get("id") for each in objects(offered.get("availableModes"))]
        wanted = next((mode for mode in self._profile.acp.modes if mode in there), None)
        return None if wanted == offered.get("currentModeId") else wanted

    def _opened_all(self) -> None:
        if self._tells:
            self.stage = AcpStage.TELLING
        else:
            self._ready()

    def _ready(self) -> None:
        assert self.session is not None
        self.stage = AcpStage.READY
        if self.alerted:
            self.alerted, self.problem = False, ""
            self._out.append(Emit(LinkAlert(NOT_OPENED, "it has opened a session", "over")))
        self._told_ready()
        self._out.append(Emit(LinkSession(self.session)))

    def _fail(self, problem: str) -> None:
        self.stage, self.problem = AcpStage.FAILED, problem
        self._out.append(ShowLine(problem))
        self._alert(problem)

    def _alert(self, problem: str) -> None:
        self.alerted = True
        self._out.append(Emit(LinkAlert(NOT_OPENED, f"{problem}: it takes no messages", "begins")))

    def waited(self, now: float) -> None:
        """Handles the passing of time (`now` in monotonic seconds): reports once that a program does not answer."""
        if self.stage is AcpStage.TELLING:
            pause = now - (self._told_since or now)
            if self._tells:
                self._rest_s = max(self._rest_s, PAUSES * pause)
                self._told_since, self._tells = now, False
            elif pause >= self._rest_s:
                self._ready()
        if self.stage not in (AcpStage.STARTING, AcpStage.OPENING) or self.alerted:
            return
        if self._waits_since is None:
            self._waits_since = now
        elif now - self._waits_since >= PATIENCE_S:
            asked = "initialize" if self.stage is AcpStage.STARTING else "session/new"
            self.problem = f"{asked} is not answered (does it speak the Agent Client Protocol on stdin and stdout?)"
            self._alert(self.problem)


def words_of(message: dict[str, Any]) -> str:
    """Returns the reason in an error response, as text for people."""
    error = message.get("error")
    return str(error.get("message") or error) if isinstance(error, dict) else "no reason was given"
