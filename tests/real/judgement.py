"""What became of every message of a long run, judged by the model's log.

Pure: the tasks and events of the daemon's store, the requests that the model received, and the run's own journal (who
did what to which agent) go in, faults come out. No disturbance excuses a wrong answer, a doubled or a mixed message; it
only explains why a turn was canceled or had to wait.
"""

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from tests.real.model import Request
from tests.real.pace import Pace
from tests.real.script import expected_answer

__all__ = [
    "CONFIRMED_S",
    "DAY_S",
    "LATE_S",
    "WORD",
    "Happening",
    "Journal",
    "Letter",
    "Verdict",
    "begun_at",
    "ends_of",
    "judge",
    "letters_of",
    "unaccounted",
]

UNKNOWN = Pace()

WORD = re.compile(r"nonce-[0-9a-f]{12}")

LATE_S = 10.0
"""By then the program has taken a message that reaches the model, or its non-delivery is told; what delays it by right
does not count."""

CONFIRMED_S = 3.0
"""By then the program has confirmed that a turn is canceled."""

SLACK_S = 3.0
"""How long a happening may show its effect after it is over: a key is on its way, a daemon that is back takes up its
agents, a person's hands rest."""

FINAL = ("completed", "failed", "canceled", "rejected")

CAUSES = {
    "canceled": {"cancel"},
    "interrupted": {"urgent", "cancel"},
    "person": {"esc", "prompt"},
    "program": {"esc", "prompt"},
    "refused": {"no"},
}
"""What must have happened for a task to be canceled for that reason."""

type Span = tuple[float, float]
"""From, to: Unix seconds."""


@dataclass(frozen=True, kw_only=True)
class Happening:
    """Something done on purpose: `what` is ``urgent``, ``cancel``, ``esc``, ``prompt`` (a person's own), ``draft``,
    ``yes``, ``no``; or, with an empty `agent`, ``begin`` (of the run), ``kill`` (of the daemon) or ``clock`` (that the
    daemon and its programs have, set by whole days). `word` is what a person's prompt holds, or what a
    message that is canceled does; `told` what became of that: ``canceled``, the code of a refusal, nothing where the
    daemon was killed over it."""

    what: str
    agent: str = ""
    since: float = 0.0
    until: float = 0.0
    word: str = ""
    told: str = ""


class Journal:
    """Happenings, one a line of a file, so that a run can be judged again."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, happening: Happening) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(happening)) + "\n")

    @staticmethod
    def read(path: Path) -> list[Happening]:
        return [Happening(**json.loads(line)) for line in path.read_text().splitlines()]


@dataclass(frozen=True, kw_only=True)
class Letter:
    """A message and its task. `begun`: when its delivery began; of its agent's whole time, `asked`: while a dialog
    stood; `idle`: while it was ready and had no task at work."""

    task_id: str
    agent: str
    text: str
    status: str
    code: str | None = None
    reason: str | None = None
    answer: str | None = None
    exact: bool | None = None
    sent: float
    begun: float | None = None
    taken: float | None = None
    """When its agent went to work, after it was begun to be typed."""
    ended: float | None = None
    asked: tuple[Span, ...] = ()
    idle: tuple[Span, ...] = ()

    @property
    def word(self) -> str:
        found = WORD.search(self.text)
        assert found is not None, self.text
        return found[0]

    def __str__(self) -> str:
        state = " ".join(filter(None, (self.status, self.code, self.reason)))
        return f"{self.agent} {self.task_id[:8]} {self.text[:60]!r} ({state})"


@dataclass
class Verdict:
    """`faults` are sentences by kind; `figures` are seconds and counts worth telling."""

    faults: dict[str, list[str]] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    figures: dict[str, float] = field(default_factory=dict)

    def fault(self, kind: str, text: object) -> None:
        self.faults.setdefault(kind, []).append(str(text))

    def longest(self, what: str, seconds: float) -> None:
        self.figures[what] = max(round(seconds, 2), self.figures.get(what, 0.0))

    def count(self, what: str) -> None:
        self.figures[what] = self.figures.get(what, 0) + 1


# --- spans of time ---------------------------------------------------------------------------------------------------


def _without(spans: Iterable[Span], holes: Iterable[Span]) -> list[Span]:
    left = list(spans)
    for start, end in holes:
        left = [
            piece
            for since, until in left
            for piece in ((since, min(until, start)), (max(since, end), until))
            if piece[0] < piece[1]
        ]
    return left


def _within(spans: Iterable[Span], window: Span) -> list[Span]:
    start, end = window
    return [(max(since, start), min(until, end)) for since, until in spans if since < end and until > start]


# --- the daemon's store ----------------------------------------------------------------------------------------------


DAY_S = 86_400.0


def begun_at(happenings: Sequence[Happening]) -> float | None:
    """Returns when the run began by the machine's clock; None for a run that did not note it, and set no clock."""
    return next((happening.since for happening in happenings if happening.what == "begin"), None)


def letters_of(database: Path, now: float, begun: float | None = None) -> list[Letter]:
    """Every message that the store has a task for; what is not over lasts until `now`.

    The daemon's clock may have been set by whole days, at any time: with `begun`, the store's dates are taken as times
    of the day that began then.
    """
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        tasks: list[dict[str, Any]] = [
            json.loads(data) for (data,) in connection.execute("SELECT data FROM tasks ORDER BY seq")
        ]
        rows = connection.execute("SELECT at, agent_id, task_id, data FROM events ORDER BY id").fetchall()
    finally:
        connection.close()

    def right(at: float) -> float:
        return at if begun is None else begun + (at - begun) % DAY_S

    history = _History.of([(right(at), agent, task, json.loads(data)) for at, agent, task, data in rows], now)
    return [
        _letter(task, history, right(datetime.fromisoformat(task["created_at"]).timestamp()))
        for task in tasks
        if WORD.search(_text(task))
    ]


def ends_of(database: Path) -> list[str]:
    """Programs that ended by themselves: nobody ends one in a run."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        rows = connection.execute("SELECT agent_id, data FROM events WHERE type = 'agentState' ORDER BY id").fetchall()
    finally:
        connection.close()
    told = [(agent, json.loads(data)) for agent, data in rows]
    return [f"{agent}: {data['reason']}" for agent, data in told if data["state"] in ("exited", "backoff", "failed")]


def _text(task: dict[str, Any]) -> str:
    return "\n".join(part["text"] for part in task["message"]["parts"] if part["type"] == "text")


def _letter(task: dict[str, Any], history: "_History", sent: float) -> Letter:
    answers = [a["parts"][0]["text"] for a in task["artifacts"] if a["artifact_id"] == "answer"]
    agent, task_id = task["agent_id"], task["id"]
    steps = history.steps.get(task_id, [])
    begun = next((at for at, state in steps if state == "working"), None)
    return Letter(
        task_id=task_id,
        agent=agent,
        text=_text(task),
        status=task["status"],
        code=(task["error"] or {}).get("code"),
        reason=task["metadata"].get("reason"),
        answer=answers[0] if answers else None,
        exact=task["exact"],
        sent=sent,
        begun=begun,
        taken=next((at for at in history.to_work.get(agent, ()) if begun is not None and at >= begun), None),
        ended=next((at for at, state in steps if state in FINAL), None),
        asked=tuple(history.waiting.get(agent, ())),
        idle=history.idle.get(agent, ()),
    )


@dataclass
class _History:
    """By agent: when it went to work, while it was ready, while it waited for a person, while a task of it was at
    work, while it was ready and none was."""

    steps: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    to_work: dict[str, list[float]] = field(default_factory=dict)
    ready: dict[str, list[Span]] = field(default_factory=dict)
    waiting: dict[str, list[Span]] = field(default_factory=dict)
    at_work: dict[str, list[Span]] = field(default_factory=dict)
    idle: dict[str, tuple[Span, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Sequence[tuple[float, str, str | None, dict[str, Any]]], now: float) -> Self:
        history = cls()
        activity: dict[str, tuple[str, float]] = {}
        owners: dict[str, str] = {}
        for at, agent, task, data in rows:
            if data["type"] == "activity":
                history._rest(agent, activity.get(agent), at)
                activity[agent] = (data["activity"], at)
                if data["activity"] == "busy":
                    history.to_work.setdefault(agent, []).append(at)
            elif data["type"] == "taskStatus" and task is not None:
                history.steps.setdefault(task, []).append((at, data["state"]))
                owners[task] = agent
        for agent, last in activity.items():
            history._rest(agent, last, now)
        for task, steps in history.steps.items():
            begun = [at for at, state in steps if state == "working"]
            ended = [at for at, state in steps if state in FINAL] or [now]
            if begun:
                history.at_work.setdefault(owners[task], []).append((begun[0], ended[0]))
        history.idle = {
            agent: tuple(_without(spans, history.at_work.get(agent, ()))) for agent, spans in history.ready.items()
        }
        return history

    def _rest(self, agent: str, last: tuple[str, float] | None, until: float) -> None:
        if last is not None and last[0] in ("ready", "waiting"):
            spans = self.ready if last[0] == "ready" else self.waiting
            spans.setdefault(agent, []).append((last[1], until))


# --- judging ---------------------------------------------------------------------------------------------------------


@dataclass
class _Evidence:
    """The model's log, by word: how often it is a message of the conversation, when it first came, how often it was
    answered with text."""

    requests: Sequence[Request]
    times: Counter[str] = field(default_factory=Counter)
    first: dict[str, float] = field(default_factory=dict)
    answered: Counter[str] = field(default_factory=Counter)
    spans: dict[str, list[Span]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    """The message with that word."""

    def __post_init__(self) -> None:
        known: dict[str, frozenset[str]] = {}  # a conversation is sent whole with every request
        for request in self.requests:
            for text in request.users:
                if text not in known:
                    known[text] = frozenset(WORD.findall(text))
            here = Counter(word for text in request.users for word in known[text])
            for word, count in here.items():
                self.times[word] = max(self.times[word], count)
                self.first.setdefault(word, request.at)
            for word in set(WORD.findall(request.user)):
                self.answered[word] += request.reply == "text" and request.outcome == "sent"
                self.spans.setdefault(word, []).append((request.at, request.ended_at or request.at))
                self.texts.setdefault(word, request.user)

    def repeats(self, word: str, happenings: Sequence[Happening]) -> bool:
        """Returns whether the program asks its model again and again for that word, which it was given once: opencode
        does where the clock is behind the date of a message (docs/clocks.md), also of one that was stopped before."""
        if self.times[word] != 1 or self.answered[word] < 2:
            return False
        last = self.spans[word][-1][1]
        return any(happening.what == "clock" and happening.since < last for happening in happenings)

    def notes(self, letter: Letter) -> list[Request]:
        """What synapsed itself told the model within this task: that something was refused."""
        mark = f"[A2A:{letter.task_id[:8]}:synapse-system]"
        return [request for request in self.requests if mark in request.user]


REPEATED = 3
"""Answers to one message after which synapsed stops a turn."""


def unaccounted(tried: Iterable[str], taken: Iterable[str], letters: Sequence[Letter]) -> Iterator[str]:
    """What is wrong between the words that were `tried` to be sent, those of them that the daemon said it had `taken`,
    and what it knows. One that was tried when the daemon was killed may be known or not, but once."""
    known = Counter(letter.word for letter in letters)
    yield from (f"{word} was taken, and is not known" for word in sorted(set(taken) - set(known)))
    yield from (f"{word} is known, and was never sent" for word in sorted(set(known) - set(tried)))
    yield from (f"{word} is known {count} times" for word, count in sorted(known.items()) if count > 1)


def judge(
    letters: Sequence[Letter], requests: Sequence[Request], happenings: Sequence[Happening], pace: Pace = UNKNOWN
) -> Verdict:
    """The faults of a run. Times are those of a machine that nobody else uses, as far as `pace` tells."""
    verdict, evidence = Verdict(), _Evidence([r for r in requests if not r.is_side_call])
    _judge_requests(verdict, evidence.requests)
    for letter in letters:
        verdict.outcomes[" ".join(filter(None, (letter.status, letter.code, letter.reason)))] += 1
        if letter.ended is None:
            verdict.fault("stranded", letter)
        if evidence.times[letter.word] > 1 or evidence.answered[letter.word] > 1:
            count = f"{evidence.times[letter.word]} times, answered {evidence.answered[letter.word]} times"
            stopped = letter.status == "canceled" or evidence.answered[letter.word] >= REPEATED
            if stopped and evidence.repeats(letter.word, happenings):
                verdict.count("turns in which a program asked again and again after the clock was set")
            else:
                verdict.fault("doubled", f"{letter}: {count}")
        _judge_end(verdict, letter, evidence, happenings)
        _judge_times(verdict, letter, evidence, happenings, pace)
    _judge_cancels(verdict, letters, happenings, pace)
    for happening in happenings:
        if happening.what == "prompt":
            verdict.count("prompts of people")
            if evidence.times[happening.word] > 1 or evidence.answered[happening.word] > 1:
                verdict.fault("doubled", f"a person's prompt: {happening}")
            if not evidence.times[happening.word]:
                verdict.count("prompts of people that did not arrive")
    return verdict


def _judge_cancels(verdict: Verdict, letters: Sequence[Letter], happenings: Sequence[Happening], pace: Pace) -> None:
    """Each is confirmed in time, unless its task had ended; a daemon that is killed and hands at the terminal take
    theirs."""
    by_word = {letter.word: letter for letter in letters}
    for happening in happenings:
        if happening.what != "cancel" or not happening.told or (letter := by_word.get(happening.word)) is None:
            continue
        if happening.told != "canceled":
            if letter.status == "canceled" or letter.ended is None or letter.ended > happening.until:
                verdict.fault("cancel not confirmed", f"{letter}: {happening.told}")
            continue
        others = [
            (h.since, h.until + SLACK_S)
            for h in happenings
            if h.what == "kill" or (h.what in ("draft", "prompt", "esc", "urgent") and h.agent == happening.agent)
        ]
        took = pace.seconds(_without([(happening.since, happening.until)], others))
        verdict.count("cancels confirmed")
        verdict.longest("longest confirmation of a cancel, s", took)
        if took > CONFIRMED_S:
            verdict.fault("cancel confirmed late", f"{letter}: {took:.1f} s")


def _judge_requests(verdict: Verdict, requests: Sequence[Request]) -> None:
    told = set()
    for request in requests:
        for text in request.users:
            if text in told:
                continue
            told.add(text)
            if len(set(WORD.findall(text))) > 1:
                verdict.fault("concatenated", repr(text[:300]))
            if "draft " in text:
                verdict.fault("draft submitted", repr(text[:300]))


def _judge_end(verdict: Verdict, letter: Letter, evidence: _Evidence, happenings: Sequence[Happening]) -> None:
    arrived = evidence.times[letter.word] > 0
    match letter.status:
        case "completed":
            if not arrived:
                verdict.fault("completed without a submission", f"{letter}: {letter.answer!r}")
            _judge_answer(verdict, letter, evidence, happenings)
        case "failed" if letter.code == "UNDELIVERED":
            verdict.count("undelivered")
            if arrived:
                verdict.fault("told as undelivered, but it arrived", letter)
        case "failed" if _unasked(letter, happenings) and letter.word not in evidence.spans:
            verdict.count("turns that ended without a word after the clock was set")
        case "failed" | "rejected":
            verdict.fault("failed", letter)
        case "canceled":
            if not _caused(letter, happenings):
                verdict.fault("canceled by nobody", letter)


def _unasked(letter: Letter, happenings: Sequence[Happening]) -> bool:
    """opencode does not ask its model while the clock is behind the date of its last message (docs/clocks.md); the next
    request may have the prompt among those before. A daemon that comes up after such a turn knows nothing of it."""
    window = (letter.sent, letter.ended or letter.sent)
    killed = any(h.what == "kill" and h.since <= window[1] and h.until >= window[0] for h in happenings)
    codes = {"MODEL_ERROR", "TIMEOUT"} if killed else {"MODEL_ERROR"}
    return letter.code in codes and _clock_was_set(letter, happenings)


def _clock_was_set(letter: Letter, happenings: Sequence[Happening]) -> bool:
    return any(h.what == "clock" and h.since < (letter.ended or letter.sent) for h in happenings)


def _judge_answer(verdict: Verdict, letter: Letter, evidence: _Evidence, happenings: Sequence[Happening]) -> None:
    expected = letter.answer == expected_answer(letter.text)
    if expected or any(letter.answer == expected_answer(note.user) for note in evidence.notes(letter)):
        verdict.count("exact answers")
        return
    # A person's prompt that the program took into the running turn (it steers) ends that turn with its own answer.
    window = (letter.begun or letter.sent, letter.ended or letter.sent)
    own = {h.word for h in happenings if h.what == "prompt" and h.agent == letter.agent}
    if any(letter.answer == f"Answer to {word}." and _within(evidence.spans.get(word, ()), window) for word in own):
        verdict.count("turns that a person steered")
        return
    others = set(WORD.findall(letter.answer or "")) - {letter.word}
    told = {
        word
        for word, text in evidence.texts.items()
        if word != letter.word and _within(evidence.spans[word], window) and letter.answer == expected_answer(text)
    }
    if _clock_was_set(letter, happenings) and any(evidence.repeats(word, happenings) for word in others | told):
        verdict.count("turns in which a program answered another message after the clock was set")
        return
    kind = "misattributed" if others else "wrong answer"
    verdict.fault(kind, f"{letter}: exact {letter.exact}, {(letter.answer or '')[:300]!r}")


def _caused(letter: Letter, happenings: Sequence[Happening]) -> bool:
    wanted = CAUSES.get(letter.reason or "", set())
    window = (letter.sent, letter.ended or letter.sent)
    return any(
        h.what in wanted and h.agent == letter.agent and h.since <= window[1] and h.until + SLACK_S >= window[0]
        for h in happenings
    )


def _judge_times(
    verdict: Verdict, letter: Letter, evidence: _Evidence, happenings: Sequence[Happening], pace: Pace
) -> None:
    over = letter.ended if letter.ended is not None else letter.begun or letter.sent
    arrived = evidence.first.get(letter.word)
    excused = [*letter.asked, *_by_right(letter, evidence, happenings)]
    waited = pace.seconds(_without(_within(letter.idle, (letter.sent, letter.begun or over)), excused))
    verdict.longest("longest wait at a ready agent, s", waited)
    if waited > LATE_S:
        verdict.fault("late", f"{letter}: {waited:.1f} s at a ready agent")
    if letter.begun is None:
        return
    until = over
    if arrived is not None:
        until = min(over, arrived, letter.taken or arrived)
        verdict.longest("longest from the program to the model, s", arrived - until)  # a first turn on a busy machine
    typed = pace.seconds(_without([(letter.begun, until)] if until > letter.begun else [], excused))
    what = "longest delivery, s" if arrived is not None else "longest until a non-delivery was told, s"
    verdict.longest(what, typed)
    if typed > LATE_S:
        verdict.fault("late", f"{letter}: {what} {typed:.1f}")


def _by_right(letter: Letter, evidence: _Evidence, happenings: Sequence[Happening]) -> list[Span]:
    """While a person typed or had a turn of their own there, or no daemon ran."""
    spans = [
        (h.since, h.until + SLACK_S)
        for h in happenings
        if h.what == "kill" or (h.what in ("draft", "prompt", "esc") and h.agent == letter.agent)
    ]
    for happening in happenings:
        if happening.what == "prompt" and happening.agent == letter.agent:
            spans += [(since, until + SLACK_S) for since, until in evidence.spans.get(happening.word, ())]
    return spans
