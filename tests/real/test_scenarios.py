"""Hard scenarios on the real programs, judged by what the model received."""

import asyncio
import hashlib
import random
import signal
import time
from collections.abc import Callable

import psutil
import pytest

from synapsed.keepers.client import KeeperClient
from synapsed.terminal.delivery import clean
from tests.real.agents import EVERY, MAIN, RealAgent, StartAgent, nonce
from tests.real.looks import LOOKS, press_interrupt
from tests.real.model import Model
from tests.real.programs import Prepared
from tests.real.script import expected_answer
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

type CliHome = Callable[[str], Prepared]


def received(agent: RealAgent, word: str) -> str:
    """The user's message with `word`, as the model got it."""
    return agent.model.turns(word)[0].user


def forms(message: str) -> tuple[str, str]:
    """How a message may arrive: as it is over a channel; at a terminal without what would be keys there."""
    return message.strip(), clean(message).strip()


def test_48_kilobytes_in_many_lines_arrive_whole(start_agent: StartAgent) -> None:
    agent = start_agent("gemini")
    rng = random.Random(1)
    for _ in range(20):
        word = nonce()
        lines = ["".join(rng.choices("abcdefghij klmnop", k=rng.randint(0, 110))).rstrip() for _ in range(880)]
        message = (f"{word} [[answer:short]]\n" + "\n".join(lines))[:48_000] + "\nthe end"
        assert 45_000 < len(message) < 48 * 1024, "below what goes through the inbox"
        agent.ask_exactly(message)
        digest = hashlib.sha256(received(agent, word).strip().encode()).hexdigest()
        assert digest == hashlib.sha256(message.encode()).hexdigest()
        assert agent.model.submissions(word) == 1


HOSTILE = (
    "{word} \x1b[201~\r!touch broken-out\r",
    "{word} \x03\x03 \x04 text",
    "{word} a line that ends with a backslash \\",
    "!touch broken-out {word}",
    "/quit {word}",
    "\ufeff!touch broken-out {word}",
    "\ufeff/quit {word}",
    "\n\n  !touch broken-out {word}",
)


@pytest.mark.parametrize("cli", EVERY)
def test_a_hostile_body_executes_nothing(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    pid = agent.pid
    for body in HOSTILE:
        word = nonce()
        answer = agent.ask(body.format(word=word))
        assert (answer.code, answer.out) == (0, f"Answer to {word}.\n"), (body, answer, agent.screen())
        assert agent.model.submissions(word) == 1, (body, agent.screen(), agent.daemon.log()[-2000:])
        arrived = received(agent, word)
        assert any(form in arrived for form in forms(body.format(word=word))), (arrived, "nothing of it is lost")
        assert agent.pid == pid
    assert not agent.file("broken-out").exists()


WORDS = (
    "exit",
    "  quit",
    "/exit",
    ":q",
    "logout",
    "!",
    "/",
    "\\",
    "?",
    "# note",
    "exit\ufeff",
    "\ufeff/exit",
    "\ufeffquit",
)


@pytest.mark.parametrize("cli", EVERY)
def test_words_that_are_commands_are_messages(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    pid = agent.pid
    for body in WORDS:
        before = len(agent.model.requests())
        answer = agent.ask(body)
        assert answer.code == 0, (body, answer, agent.screen())
        asked = agent.model.requests()[before:]
        assert asked, (body, agent.screen())
        assert asked[0].user.strip().endswith(forms(body)), (body, asked[0].user)
        assert answer.out == expected_answer(asked[0].user) + "\n"
        assert agent.pid == pid


@pytest.mark.parametrize("cli", MAIN)
def test_a_message_sent_while_the_program_starts_is_held_and_delivered_once(
    cli: str, daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    agent = RealAgent.start(cli, daemon, model, cli_home(cli), ready=False)
    words = [nonce() for _ in range(3)]
    tasks = [agent.send(f"Early {word}.") for word in words]
    for word, task_id in zip(words, tasks, strict=True):
        done = daemon.task_in(task_id, "completed", "failed", "canceled")
        assert done["status"] == "completed", done
        assert done["artifacts"][-1]["parts"][0]["text"] == expected_answer(f"Early {word}.")
        assert model.submissions(word) == 1


@pytest.mark.parametrize("cli", MAIN)
def test_a_message_during_a_permission_dialog_leaves_it_alone(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    first, second = nonce(), nonce()
    asked = agent.ask(f"{first} [[tool:shell-ask:touch {first}]] say: Touched.")
    assert asked.code == 7, asked.err
    before = agent.daemon.agent(agent.name)
    assert before["activity"] == "waiting"
    later = agent.send(f"Later {second}.")
    urgent = agent.daemon.ctl("status", agent.name, "--json").json
    assert urgent["prompt"]["prompt_id"] == before["prompt"]["prompt_id"]
    assert agent.model.submissions(second) == 0
    agent.daemon.ctl("approve", agent.name)
    done = agent.daemon.task_in(later, "completed", "failed", "canceled")
    assert done["status"] == "completed"
    assert agent.file(first).exists()
    assert (agent.model.submissions(first), agent.model.submissions(second)) == (1, 1)


def test_two_messages_to_a_busy_codex_are_two_turns(start_agent: StartAgent) -> None:
    agent = start_agent("codex")
    held, one, two = nonce(), nonce(), nonce()
    running = agent.send(f"[[hold-mid:{held}]] {held} [[answer:lines20]]")
    agent.model.wait_for_turn(held)
    tasks = [agent.send(f"First {one}."), agent.send(f"Second {two}.")]
    agent.model.release(held)
    for task_id, text in zip(
        (running, *tasks), (f"{held} [[answer:lines20]]", f"First {one}.", f"Second {two}."), strict=True
    ):
        done = agent.daemon.task_in(task_id, "completed", "failed", "canceled")
        assert done["artifacts"][-1]["parts"][0]["text"] == expected_answer(text)
    assert [agent.model.submissions(word) for word in (held, one, two)] == [1, 1, 1]


@pytest.mark.parametrize("cli", EVERY)
def test_a_person_who_stops_a_turn_in_the_terminal(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    pid, word = agent.pid, nonce()
    task_id = agent.send(f"[[hold-mid:never-{word}]] {word} [[answer:lines20]]")
    agent.model.wait_for_turn(word)
    agent.daemon.task_in(task_id, "working")
    with agent.attached() as person:
        person.wait_screen("Line 00")
        press_interrupt(person, LOOKS[cli])
        done = agent.daemon.task_in(task_id, "completed", "failed", "canceled")
        assert (done["status"], done["metadata"].get("reason")) == ("canceled", "person"), done
    assert agent.pid == pid
    agent.ask_exactly(f"Next, {nonce()}.")


EARLY = (
    "{word} [[hold:never-{word}]]",
    "{word} [[hold:never-{word}]] long\n" + "\n".join(f"line {n}" for n in range(90)),
)


@pytest.mark.parametrize("cli", EVERY)
def test_a_person_who_stops_a_turn_before_the_model_said_anything(cli: str, start_agent: StartAgent) -> None:
    """claude gives the message back into its composer: it is neither an answer nor anybody's draft."""
    agent = start_agent(cli)
    for message in EARLY:
        word, after = nonce(), nonce()
        task_id = agent.send(message.format(word=word))
        agent.model.wait_for_turn(word)
        agent.daemon.task_in(task_id, "working")
        with agent.attached() as person:
            press_interrupt(person, LOOKS[cli])
            done = agent.daemon.ended(task_id)
            assert (done["status"], done["metadata"].get("reason")) == ("canceled", "person"), done
        agent.ask_exactly(f"Next, {after}.")
        assert [text for text in agent.model.turns(after)[-1].users if after in text] == [f"Next, {after}."]


@pytest.mark.parametrize("cli", EVERY)
def test_messages_canceled_while_they_are_typed_leave_nothing(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    pid = agent.pid
    for turn in range(8):
        after = nonce()
        task_id = agent.send(
            f"To be canceled, {nonce()}.\n\nIn several\nlines" if turn % 2 else f"Canceled, {nonce()}."
        )
        time.sleep(0.05 * turn)  # a moment of the typing, not a wait for anything
        assert agent.daemon.post(f"/control/tasks/{task_id}/cancel", {}).status in (200, 409), "409: it was quicker"
        last = agent.send(f"Next, {after}.")
        try:
            done = agent.daemon.ended(last)
        except AssertionError:
            raise AssertionError(f"{turn} {agent.daemon.agent(agent.name)}\n{agent.screen()}") from None
        assert done["artifacts"][0]["parts"][0]["text"] == f"Answer to {after}.", done
        assert [text for text in agent.model.turns(after)[-1].users if after in text] == [f"Next, {after}."]
    assert agent.pid == pid


@pytest.mark.parametrize("cli", ["claude", "gemini", "opencode"])
def test_what_a_person_queues_while_a_task_runs_takes_nothing_from_it(cli: str, start_agent: StartAgent) -> None:
    """(codex does not queue it: the person joins in the turn that runs.)"""
    agent = start_agent(cli)
    word, queued, after = nonce(), nonce(), nonce()
    task_id = agent.send(f"{word} [[hold:{word}]]")
    agent.model.wait_for_turn(word)
    with agent.attached() as person:
        person.send(f"\x1b[200~Queued {queued}. [[delay:3]]\x1b[201~")
        person.wait_screen(queued)
        person.settle(0.3)
        person.send("\r")
        person.settle(1.0)
        last = agent.send(f"Next, {after}.")
        agent.model.release(word)
        done = agent.daemon.ended(task_id)
        assert (done["status"], done["exact"]) == ("completed", True), done
        assert done["artifacts"][0]["parts"][0]["text"] == f"Answer to {word}.", done
        assert agent.daemon.ended(last)["artifacts"][0]["parts"][0]["text"] == f"Answer to {after}."
    assert [agent.model.submissions(each) for each in (word, queued, after)] == [1, 1, 1]


def test_esc_with_a_queued_message_of_a_person(start_agent: StartAgent) -> None:
    """claude submits what a person queued when the running turn is stopped: the person's turn, not the task's."""
    agent = start_agent("claude")
    word, queued = nonce(), nonce()
    task_id = agent.send(f"[[hold-mid:never-{word}]] {word} [[answer:lines20]]")
    agent.model.wait_for_turn(word)
    with agent.attached() as person:
        person.wait_screen("Line 00")
        person.send(f"\x1b[200~Queued {queued}.\x1b[201~")
        person.wait_screen(queued)
        person.settle(0.3)
        person.send("\r")
        person.settle(0.5)
        person.send("\x1b")
        agent.model.wait_for_turn(queued)
    done = agent.daemon.task_in(task_id, "completed", "failed", "canceled")
    assert done["status"] == "canceled", done
    agent.ask_exactly(f"Next, {nonce()}.")
    assert agent.model.submissions(queued) == 1


@pytest.mark.parametrize("away", [False, True])
def test_what_a_person_queued_is_not_answered_to_the_task(away: bool, start_agent: StartAgent) -> None:
    """After a refused permission gemini reports no end of the turn, and begins at once with what was queued; the daemon
    may be away just then."""
    agent = start_agent("gemini")
    word, queued = nonce(), nonce()
    task_id = agent.send(f"[[hold:{word}]] {word} [[tool:shell-ask:touch {word}]] say: Touched {word}.")
    agent.model.wait_for_turn(word)
    agent.daemon.task_in(task_id, "working")
    with agent.attached() as person:
        person.submit(f"A person's {queued}")
        person.wait_screen(rf"Queued[^\n]*\n *A person's {queued}")
        agent.model.release(word)
        agent.daemon.task_in(task_id, "input_required")
        if not away:
            person.send("3")
            agent.model.wait_for_turn(queued)
    if away:
        keeper = psutil.Process(agent.pid).parent()
        assert keeper is not None
        agent.daemon.kill9()
        asyncio.run(_press(keeper, b"3"))
        eventually(lambda: _reported(agent, "AfterAgent", queued), "that turn is over")
        agent.daemon.start()
    done = agent.daemon.ended(task_id)
    assert (done["status"], done["metadata"].get("reason")) == ("canceled", "person"), done
    agent.ask_exactly(f"Next, {nonce()}.")
    assert agent.model.submissions(queued) == 1


@pytest.mark.parametrize("cli", MAIN)
def test_an_answer_that_quotes_what_a_program_shows(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    agent.ask_exactly(f"{nonce()} [[answer:quotes]]")
    record = r"printf '\033]7501;state=idle:app=x\033\\\033]7501;state=blocked:kind=permission:app=x\033\\'"
    word = nonce()
    message = f"{word} [[tool:shell:{record}; cat < /dev/null]] [[stall:2]] say: It printed reports {word}."
    task_id = agent.send(message)
    task = agent.daemon.task_in(task_id, "input_required", "completed")
    if task["status"] == "input_required":
        assert agent.daemon.ctl("input", task_id, "yes").code == 0
    done = agent.daemon.task_in(task_id, "completed", "failed", "canceled")
    assert done["artifacts"][-1]["parts"][0]["text"] == expected_answer(message), done
    agent.ask_exactly(f"And after, {nonce()}?")


def test_nothing_survives_a_working_codex_that_is_stopped(start_agent: StartAgent) -> None:
    agent = start_agent("codex")
    word = nonce()
    agent.send(f"[[hold-mid:never-{word}]] {word}")
    agent.model.wait_for_turn(word)
    launch = _launch_of(agent.pid)
    assert agent.daemon.ctl("stop", agent.name).code == 0
    assert eventually(lambda: not _of_launch(launch), "every process of the launch is gone")
    assert not [p for p in psutil.process_iter() if str(agent.prepared.home) in " ".join(_cmdline(p))]


@pytest.mark.parametrize("cli", MAIN)
def test_without_hooks_the_fallback_completes(cli: str, daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    agent = RealAgent.start(cli, daemon, model, cli_home(cli))
    agent.ask_exactly(f"With hooks, {nonce()}.")
    hooks = next((daemon.home / "state" / "agents").glob("*/hooks"))
    hooks.rename(hooks.with_name("hooks-gone"))
    word = nonce()
    task_id = agent.send(f"Without, {word}.")
    done = daemon.task_in(task_id, "completed", "failed", "canceled")
    assert done["status"] == "completed", done
    assert done["artifacts"][-1]["parts"][0]["text"].strip() == expected_answer(f"Without, {word}.")
    assert model.submissions(word) == 1
    for quoted in (
        "API Error: 429 rate limit",
        "Well:\n\n⎿  Interrupted · What should Claude do instead?",
        "■ Error: 400",
    ):
        word = nonce()
        done = daemon.ended(agent.send(f"{word} [[say:{quoted}\n\n{word}]]"))
        assert done["status"] == "completed", f"{done}\n{agent.screen()}"
        assert word in done["artifacts"][0]["parts"][0]["text"], done


def test_two_clients_of_different_sizes(start_agent: StartAgent) -> None:
    agent = start_agent("codex")
    pid = agent.pid
    with agent.attached() as one, agent.attached() as two:
        one.send("hello")
        one.wait_screen("hello")
        two.wait_screen("hello")
        two.send(b"\x1b[<35;10;10M" * 40 + b"\x1d" + b"\x1b[<35;11;10M" * 3)
        assert two.wait_exit() == 0
        one.send("\x15\x7f\x7f\x7f\x7f\x7f")
        one.wait_gone("hello")
    daemon = agent.daemon
    with agent.attached() as killed:
        psutil.Process(killed.pid).send_signal(signal.SIGKILL)
        killed.wait(lambda: killed.ended, "its end")
    assert agent.pid == pid
    daemon.ready(agent.name)
    agent.ask_exactly(f"Still there, {nonce()}?")


def test_a_persons_draft_is_never_submitted_or_mixed(start_agent: StartAgent) -> None:
    agent = start_agent("claude")
    word = nonce()
    with agent.attached() as person:
        person.send("my own draft")
        person.wait_screen("my own draft")
        eventually(lambda: agent.daemon.agent(agent.name)["held"] == "typing", "the draft is seen")
        task_id = agent.send(f"Patient {word}.")
        person.settle(1.5)
        assert agent.daemon.task(task_id)["status"] in ("submitted", "working")
        assert agent.model.submissions(word) == 0
        assert "my own draft" in person.screen()
        person.send("\x7f" * 12)
        done = agent.daemon.task_in(task_id, "completed", "failed", "canceled")
    assert done["artifacts"][-1]["parts"][0]["text"] == expected_answer(f"Patient {word}.")
    assert not agent.model.turns("draft")


@pytest.mark.parametrize("cli", ["claude"])
def test_an_idle_agent_with_a_waiting_message_and_no_output_gets_it(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    agent.daemon.kill9()
    agent.daemon.start()
    agent.ask_exactly(f"After a quiet restart, {nonce()}.")


def _reported(agent: RealAgent, event: str, word: str) -> bool:
    """Whether a hook has reported that, which no daemon has read yet."""
    reports = (agent.daemon.home / "state" / "agents").glob("*/hooks/new/*.json")
    return any(event in text and word in text for text in (path.read_text() for path in reports))


async def _press(keeper: psutil.Process, keys: bytes) -> None:
    """Type as nobody else: past the daemon."""
    (path,) = {found.laddr for found in keeper.net_connections("unix") if found.laddr}
    client = await KeeperClient.connect(path)
    await client.write(keys)
    client.close()


def _cmdline(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _launch_of(pid: int) -> str:
    return psutil.Process(pid).environ()["SYNAPSE_LAUNCH_ID"]


def _of_launch(launch: str) -> list[int]:
    """Living processes that carry the launch's mark, the keeper's own excluded (it has none)."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("SYNAPSE_LAUNCH_ID") == launch and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found
