"""Watches one terminal: bytes in, the program's activity out. Pure: it neither reads a clock nor writes a byte.

It joins the emulator, the stream scanner, the status records and the profile's patterns. `feed` returns the answers to
the program's terminal queries, which the daemon must give at once and always itself, each with the spool offset of the
query, so that an answer can carry an id and is given once.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from synapsed.model.agent import Activity
from synapsed.model.outer_terminal import OuterTerminal
from synapsed.model.records import Checkpoint
from synapsed.profiles.profile import Profile
from synapsed.terminal.background import BackgroundWork, Calm
from synapsed.terminal.composer import ComposerState, OwnText, emptied, puts_off, read_composer, stands_before, unended
from synapsed.terminal.delivery import KNOWN_BY, squeezed
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.explain import Since, Witness, explain
from synapsed.terminal.line_prompts.evidence import TerminalFacts, Word
from synapsed.terminal.line_prompts.judgement import Known, read_prompt
from synapsed.terminal.line_prompts.learned import LearnedPrompt
from synapsed.terminal.look import GONE_S, Harm, Look, TerminalReply
from synapsed.terminal.prompts import Asked, asks_in_words, find_filter, find_prompt, find_unknown
from synapsed.terminal.psp import StatusRecords
from synapsed.terminal.queries import NOBODY, answer
from synapsed.terminal.scanner import (
    EditingBegan,
    ProgressChanged,
    ProgressState,
    QueryReceived,
    Scanner,
    ShellPrompted,
    StatusReported,
    TerminalReset,
)
from synapsed.terminal.screen_messages import (
    Ask,
    InBackground,
    KeysTyped,
    Note,
    Skipped,
    StopAsked,
    StopOver,
    TurnClosed,
    TurnOpened,
)
from synapsed.terminal.snapshot import ScreenSnapshot
from synapsed.terminal.turn_signs import OpenTurn
from synapsed.terminal.unreadable import Unreadable
from synapsed.terminal.verdict import (
    Observation,
    Verdict,
    doubt,
    judge,
    lost_end,
    never_starts,
    progress_left_behind,
    screen_sign,
    stopped,
    turning_points,
)

FRAME_MAX_S = 0.2
"""Seconds for which a program may hold a frame open (DECSET 2026) before its screen is used all the same."""

STEADY_S = 0.15
"""Seconds for which a dialog must read the same before it is reported, because it is drawn in pieces."""

DOUBTFUL_S = 1.0
"""The same seconds for a text that has only a prompt's sign, because output may pause after such a sign."""

QUERIES_MAX = 512
"""Queries in one piece of output that are answered: most need a look at the screen. A program asks for the 256 colours
of the palette at the most; more come from a file that is shown."""

UNSTARTED = frozenset({Activity.UNKNOWN, Activity.WAITING})
"""Activities of a program that has not started: it hangs, or asks first, for instance whether its folder is trusted."""

GOOD_S = 3600.0
"""Seconds for which a look that time does not change is not judged again."""

ROUNDING_S = 1e-6
"""Seconds by which a look is judged again before time changes it: sums of times are rounded."""


@dataclass(frozen=True, slots=True)
class _LastLook:
    """The last look, its inputs besides time, the begin and the end of its validity, and the number of looks."""

    look: Look | None = None
    inputs: tuple[object, ...] = ()
    began: float = 0.0
    until: float = 0.0
    count: int = 0


class TerminalObserver:
    """Watches the output of one launch of one program."""

    unbegun: str | None = None
    """The submitted message, until a channel reports that its turn began."""

    lost_screen = False
    """True if output was skipped: the former screen is lost."""

    facts: TerminalFacts | None = None
    """Field of `Ask`, as the next attribute is."""

    learned: tuple[LearnedPrompt, ...] = ()

    _edits_from = 0
    """Spool offset at which bracketed paste was switched on last."""

    _undrawn: str | None = None
    """Field of `Observation`."""

    _shown_at: float | None = None
    """Time at which the screen first had text."""

    _outer = NOBODY
    """The terminal of the viewer."""

    def __init__(self, profile: Profile, *, cols: int, rows: int, offset: int, harm: Harm | None = None) -> None:
        self._profile = profile
        self.screen = Screen(cols, rows)
        self.drawn_from = 0.0 if harm is None else harm.until
        """Offset from which on output may be given to an emulator."""
        if harm is not None and offset <= harm.until:
            self._lose_screen(harm)
        self._scanner = Scanner()
        self._records = StatusRecords(app=profile.status_app)
        self._own_text = OwnText()
        self._progress = ProgressState.NONE
        self.turn = OpenTurn()
        self._since = Since()
        self.activity = Activity.STARTING
        """Activity of the last judgement."""
        self._lines: tuple[str, ...] = ()
        self._changed_at = 0.0
        self._calm, self._background = Calm(profile), BackgroundWork(profile)
        self._title: tuple[str, float] = ("", 0.0)
        """The title, and the time of its last change."""
        self._fed_at = 0.0
        self._before = ""
        """Text before the prompt on its line: output that did not end it."""
        self._prompt: tuple[str, float] = ("", 0.0)
        """The prompt's id, and the time of its last change."""
        self.worked_until = 0
        """Spool offset at which the program's status record last went from work to rest."""
        self.given_back: Literal["program", "command"] | None = None
        """Field of `Observation`; set by the code that asks the kernel."""
        self.in_turn = False
        """True if a message was submitted, and its turn is not over."""
        self.kernel: Word | None = None
        """Field of `Observation`, from the kernel, too."""
        self._unreadable = Unreadable()
        self._last = _LastLook()
        self._queries = 0
        """Number of queries in the last piece of output."""
        self.offset = offset
        """Spool offset up to which the output is on the screen."""

    def _lose_screen(self, harm: Harm) -> None:
        self.lost_screen = True
        self.screen.feed(f"[synapsed: {harm.message}]\r\n".encode())

    @classmethod
    def restore(
        cls, profile: Profile, checkpoint: Checkpoint, now: float, *, harm: Harm | None = None
    ) -> "TerminalObserver":
        """Returns the observer as it was at the checkpoint. An open turn is not part of it, because reports of side
        channels since then would be missing; they report again what still matters."""
        size = {"cols": checkpoint.cols, "rows": checkpoint.rows}
        self = cls(profile, **size, offset=checkpoint.offset, harm=harm)
        if not self.lost_screen:  # the redraw of a checkpoint in the harmed part may itself have done the harm
            self.screen.feed(checkpoint.redraw)
        state = checkpoint.state
        self._before = str(state.get("before", ""))
        edits_from = state.get("edits_from", 0)
        self._edits_from = edits_from if isinstance(edits_from, int) else 0
        own = state.get("own", ())
        self._own_text = OwnText([str(text) for text in own] if isinstance(own, list) else (), now)
        self._background = BackgroundWork(profile, state.get("background"))
        with contextlib.suppress(ValueError, TypeError):  # words of a newer version: the screen shows the state, too
            self.activity = Activity(state.get("activity", Activity.STARTING))
            self._progress = ProgressState(state.get("progress", 0))
            self._records = StatusRecords.from_state(state.get("records"), state.get("speaker"), app=profile.status_app)
        self._changed_at = now
        self._calm.moved(now)
        return self

    def _composer(self, screen: ScreenSnapshot) -> ComposerState:
        spec = self._profile.composer
        if not spec.usual:
            return read_composer(spec, screen, self._bright, before=self._before)
        known = Known(
            facts=self.facts, learned=self.learned, before=self._before, edits_from=self._edits_from, offset=self.offset
        )
        return read_prompt(spec, screen, known)

    def checkpoint(self) -> Checkpoint:
        screen = self.screen.snapshot()
        state: dict[str, Any] = {
            "records": self._records.to_state(),
            "speaker": self._records.speaker,
            "activity": self.activity.value,
            "progress": self._progress.value,
            "before": self._before,
            "edits_from": self._edits_from,
            "own": self._own_text.known,
            "background": list(self._background.told),
        }
        return Checkpoint(
            offset=self.offset - len(self.screen.pending),
            cols=screen.cols,
            rows=screen.rows,
            redraw=self.screen.redraw(scrollback=True),
            state=state,
        )

    def feed(self, offset: int, data: bytes, now: float, *, continues: bool = False) -> list[TerminalReply]:
        replies: list[TerminalReply] = []
        fed = 0
        self._queries = self._queries if continues else 0
        events = self._scanner.feed(data)
        editing = next((event for event in reversed(events) if isinstance(event, EditingBegan)), None)
        for event in events:
            match event:
                case QueryReceived():
                    self._queries += 1
                    if self._queries > QUERIES_MAX:
                        continue
                    # The cursor must be where the query found it.
                    self._draw(offset + fed, data[fed : event.end])
                    fed = event.end
                    reply = answer(event, self.screen.snapshot, self._outer, self.screen.keyboard_flags)
                    if reply is not None:
                        replies.append(TerminalReply(offset + event.end, reply))
                case EditingBegan() if event is editing and self._profile.composer.at_cursor:
                    self._draw(offset + fed, data[fed : event.end])
                    fed = event.end
                    self._before = unended(self.screen.snapshot())
                    self._edits_from = offset + event.end
                    self._prompted_again()
                case StatusReported() if self._profile.status_records:
                    self._report(event.body, now, offset + event.end)
                case ProgressChanged():
                    self._progress = event.state
                    self._changed_at = now  # progress is no part of the screen
                case TerminalReset():
                    self._records.clear()
                    self._progress = ProgressState.NONE
                case ShellPrompted():
                    self._prompted_again()
        self._draw(offset + fed, data[fed:] if fed else data)
        self.offset = offset + len(data)
        self._fed_at = now
        return replies

    def _prompted_again(self) -> None:
        """Drops the state and the progress of the program that had the terminal: it has ended, and a killed program
        removes neither. A program with a known `status_app` is not a shell, and keeps both."""
        if self._profile.status_app is None:
            self._records.ended()
            self._progress = ProgressState.NONE

    def _leave_behind(self, seen: Observation) -> None:
        """Drops signs that are not believed for a reason that holds only now: the next message must not revive them."""
        reads = seen.kernel == "reads"
        if stopped(self._profile, seen) or (reads and doubt(self._profile, seen) is not None):
            self._prompted_again()
        elif reads and progress_left_behind(seen):
            self._progress = ProgressState.NONE

    def _draw(self, offset: int, data: bytes) -> None:
        """Gives the allowed part of the output to the screen."""
        if offset >= self.drawn_from:
            self.screen.feed(data)
        elif offset + len(data) > self.drawn_from:
            self.screen.feed(data[int(self.drawn_from) - offset :])
        if data and not self.screen.synchronized:
            self._undrawn = None

    def _report(self, body: str, now: float, end: int) -> None:
        """Takes a status record. A program may report rest and draw its answer later: its screen must rest again."""
        before = self._records.root
        self._records.report(body)
        if self._records.root != before:
            self._changed_at = now
            self._calm.moved(now)
            if self._records.root == "working":
                self.turn.stop_over()
            if before == "working" and self._records.root in ("idle", "done", "error"):
                self.worked_until = end

    def skip(self, offset: int) -> None:
        """Notes that the output before `offset` is gone."""
        self.offset = offset

    def resize(self, cols: int, rows: int) -> None:
        before = self.screen.snapshot()
        if (cols, rows) != (before.cols, before.rows):
            self._undrawn = screen_sign(self._profile.busy, before) or self._undrawn
            self.screen.resize(cols, rows)

    def note(self, note: Note) -> None:
        match note:
            case KeysTyped(now):
                self._own_text.typed(now)  # text that appears now in its composer may come from them
            case StopAsked(now):
                self.turn.asked_to_stop(now)
            case StopOver():
                self.turn.stop_over()
            case TurnOpened(channel, at_ns):
                self.turn.opened(channel, at_ns)
            case TurnClosed():
                self.turn.closed()
            case InBackground(names):
                self._background.told = names
            case Skipped(offset):
                self.skip(offset)
            case OuterTerminal():
                self._outer = note
                self.screen.set_default_colors(note.foreground, note.background)

    def believe(self, ask: Ask) -> None:
        """Takes the caller's knowledge, which counts until the next request."""
        self.in_turn, self.unbegun, self.facts, self.learned = ask.in_turn, ask.unbegun, ask.facts, ask.learned
        self.given_back, self.kernel = ask.given_back, ask.kernel

    def asked(self, ask: Ask) -> Look | None:
        """Returns the requested look; None in the middle of a frame if a whole one is wanted."""
        self.believe(ask)
        mid_frame = self.mid_frame(ask.now)
        if ask.whole and mid_frame:
            return None
        look = self.look(ask.now)
        if not (mid_frame or ask.kinds):
            return look
        return replace(look, mid_frame=mid_frame, kinds=self.screen.kinds() if ask.kinds else None)

    def look(self, now: float) -> Look:
        """Judges the screen; while nothing has changed, and time alone changes nothing, returns the last judgement."""
        screen = self.screen.snapshot()
        last = self._last
        if last.look is not None and last.inputs == self._inputs(screen) and last.began <= now < last.until:
            return last.look
        look = self._look(screen, now)
        until = min((point for point in self._turning_points(look) if point > now), default=now + GOOD_S) - ROUNDING_S
        look = replace(look, good_until=until)
        self._last = _LastLook(look, self._inputs(screen), now, until, last.count + 1)
        return look

    def _turning_points(self, look: Look) -> list[float]:
        """Returns the times at which time alone may change `look`: none for a rest that no sign contradicts."""
        points = [look.steady_at, look.unreadable_at]
        if self._shown_at is not None and self.activity is Activity.STARTING:
            points.append(self._shown_at + (never_starts(self._profile, look.screen) or 0.0))
        says_so = look.verdict.activity is Activity.READY and look.verdict.settled and not look.lost
        if not says_so or look.turn_open or look.stopping or self._progress is not ProgressState.NONE:
            points += turning_points(self._profile, look.changed_at, look.still_since)
            points += turning_points(self._profile, look.calm_since, look.calm_since)
        return points

    @property
    def looks(self) -> int:
        """Number of judgements of the screen."""
        return self._last.count

    def _inputs(self, screen: ScreenSnapshot) -> tuple[object, ...]:
        """Returns the inputs of `_observe` and `judge` but time; `screen` is the same until something is drawn."""
        return (
            id(screen),
            self.offset,
            self._changed_at,
            self._before,
            self._undrawn,
            self._records.root,
            self._records.parts,
            self._background.told,
            self._progress,
            self.turn.channel,
            self.turn.lost_ns,
            self.turn.stop_asked_at,
            self.activity,
            self.in_turn,
            self.facts,
            self.learned,
            self.given_back,
            self.kernel,
            self.unbegun,
        )

    def _look(self, screen: ScreenSnapshot, now: float) -> Look:
        if screen.lines != self._lines:
            self._lines = screen.lines
            self._changed_at = now
        if screen.title != self._title[0]:
            self._title = (screen.title, now)
        if self._shown_at is None and any(line.strip() for line in screen.lines):
            self._shown_at = now
        seen = self._observe(screen, now)
        beside = bool(seen.background) and seen.turn_open is None
        self._calm.look(screen, seen.composer, self._changed_at, beside=beside)
        seen = replace(seen, calm_s=now - self._calm.since, calm_still_s=now - self._calm_still_since)
        if self.turn.lost_ns is None and lost_end(self._profile, seen):
            self.turn.lost_ns = int(now * 1e9)
        verdict = judge(self._profile, seen)
        self._leave_behind(seen)
        if not (verdict.activity in UNSTARTED and self.activity is Activity.STARTING):
            self.activity = verdict.activity  # one that is stuck at its start, or asks there, has not started
        asked = self._unreadable.look(
            verdict,
            screen,
            quiet_s=seen.quiet_s,
            now=now,
            in_turn=self.in_turn,
            reads_lines=self.kernel == "reads" and self._profile.composer.at_cursor,
            rests=self.kernel == "rests" and self._profile.composer.usual,
        )
        if asked is not None:
            verdict = replace(verdict, asked=asked)
        self._note(seen, now)
        return Look(
            verdict=verdict,
            composer=seen.composer,
            screen=screen,
            offset=self.offset,
            changed_at=self._changed_at,
            steady_at=self._steady_at(verdict),
            still_since=self._still_since,
            unreadable_at=self._unreadable.due or 0.0,
            record=self._records.root,
            background=seen.background,
            calm_since=self._calm_still_since,
            worked_until=self.worked_until,
            turn_open=self.turn.channel is not None,
            stopping=self.turn.stop_asked_at is not None,
            lost=self._unreadable.lost,
        )

    def _steady_at(self, verdict: Verdict) -> float:
        if verdict.asked is not None:
            return self._prompt[1] + (DOUBTFUL_S if verdict.asked.doubtful else STEADY_S)
        return self._prompt[1] + GONE_S if verdict.source == "quiet" else 0.0

    def explain(self, now: float) -> list[Witness]:
        seen = self._observe(self.screen.snapshot(), now)
        return explain(self._profile, seen, judge(self._profile, seen), self._since, now)

    def _observe(self, screen: ScreenSnapshot, now: float) -> Observation:
        composer = self._without_own_text(self._composer(screen), screen, now)
        composer, asked = self._ask(screen, composer)
        prompt_id = asked.prompt.prompt_id if asked else ""
        if prompt_id != self._prompt[0]:
            self._prompt = (prompt_id, now)
        return Observation(
            screen=screen,
            composer=composer,
            asked=asked,
            record=self._records.root,
            progress=self._progress.name.lower() if self._progress is not ProgressState.NONE else None,
            turn_open=self.turn.channel,
            quiet_s=now - self._changed_at,
            still_s=now - self._still_since,
            calm_s=now - self._calm.since,
            calm_still_s=now - self._calm_still_since,
            background=self._background.names(
                screen, composer, None if self._records.root is None else self._records.parts
            ),
            stopping=self.turn.stop_asked_at is not None,
            lost=self.turn.lost_ns is not None,
            put_off=self._puts_off(screen, composer),
            undrawn=self._undrawn,
            previous=self.activity,
            shown_s=0.0 if self._shown_at is None else now - self._shown_at,
            given_back=self.given_back,
            kernel=self.kernel,
        )

    def _puts_off(self, screen: ScreenSnapshot, composer: ComposerState) -> bool:
        spec, message = self._profile.interrupt.put_off, self.unbegun
        return (
            spec is not None and message is not None and composer.state == "empty" and puts_off(spec, screen, message)
        )

    @property
    def _still_since(self) -> float:
        return max(self._changed_at, self._title[1], self.turn.stop_asked_at or 0.0)

    @property
    def _calm_still_since(self) -> float:
        return max(self._calm.since, self._title[1], self.turn.stop_asked_at or 0.0)

    def _ask(self, screen: ScreenSnapshot, composer: ComposerState) -> tuple[ComposerState, Asked | None]:
        """Returns the composer (absent while a question gets the keys) and the question on the screen. A dialog beside
        a composer is only text, for a program that asks takes nothing but the answer. But a row of a menu may look like
        a prompt at the cursor."""
        spec, cells = self._profile.prompts, self.screen.row_cells
        if composer.state == "absent":
            return composer, find_prompt(spec, screen, cells, in_turn=self.in_turn)
        if composer.row == screen.cursor[0] and (asked := find_filter(spec, screen, cells)) is not None:
            return ComposerState("absent", why="it asks"), asked
        if self._profile.composer.usual and composer.state == "draft" and self.in_turn and not self._is_ours(composer):
            asked = find_prompt(spec, screen, cells, in_turn=True)
            return (composer if asked is None else ComposerState("absent", why="it asks")), asked
        if (
            composer.state == "empty"
            and not composer.learned
            and (asked := find_prompt(spec, screen, cells)) is not None
        ):
            return ComposerState("absent", why="it asks"), asked
        if self._profile.composer.at_cursor:
            asked = find_unknown(spec, screen, cells)
            menu = asked.menu if asked is not None else None
            shown = menu is not None and (menu.framed or screen.alternate or not screen.cursor_visible)
            if menu is not None and shown and composer.row in menu.rows:
                return ComposerState("absent"), asked
            if asks_in_words(screen):
                return ComposerState("absent"), find_prompt(spec, screen, cells, in_turn=self.in_turn)
        return composer, None

    def _is_ours(self, composer: ComposerState) -> bool:
        """Returns True if the composer holds the submitted message, which the program has not taken yet."""
        return self.unbegun is not None and squeezed(composer.text)[:KNOWN_BY] in squeezed(self.unbegun)

    def _without_own_text(self, composer: ComposerState, screen: ScreenSnapshot, now: float) -> ComposerState:
        before = (
            composer.state == "draft"
            and composer.row is not None
            and stands_before(composer, screen, self.screen.row_cells(composer.row))
        )
        if not self._own_text.is_own(composer, before=before, now=now):
            return composer
        return emptied(self._profile.composer, screen, composer)

    def _note(self, seen: Observation, now: float) -> None:
        self._since.note("dialog", self._prompt[0], now)
        self._since.note("status record", seen.record, now)
        self._since.note("turn", seen.turn_open, now)
        self._since.note("title", seen.screen.title, now)
        self._since.note("progress", seen.progress, now)
        self._since.note("screen", seen.screen.lines, now)
        self._since.note("composer", seen.composer.state, now)

    def mid_frame(self, now: float) -> bool:
        """Returns True if the program is drawing: the screen has only a part of the frame."""
        return self.screen.synchronized and now - self._fed_at < FRAME_MAX_S

    def redraw(self, notice: Sequence[str] = (), *, alone: bool = False) -> bytes:
        """Returns the screen for a terminal that is new, or missed something, with the program's status records.
        `alone` as for `Screen.redraw`."""
        record = self._records.get()
        status = f"\x1b]7501;{record.body()}\x1b\\".encode() if record is not None else b""
        return self.screen.redraw(notice=notice, alone=alone) + status

    @property
    def _bright(self) -> Callable[[int], str]:
        """Returns a row's text with faint cells blanked, character for character."""

        def bright(row: int) -> str:
            return "".join(" " * len(cell.text) if cell.dim else cell.text for cell in self.screen.row_cells(row))

        return bright
