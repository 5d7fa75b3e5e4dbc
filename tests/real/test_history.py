"""What real programs said, did and used, found again: `synapsectl history` and `synapsectl usage`."""

import pytest

from tests.real.agents import EVERY, StartAgent, nonce
from tests.support.daemon import eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


@pytest.mark.parametrize("cli", EVERY)
def test_a_turn_is_found_again_after_a_kill(cli: str, start_agent: StartAgent) -> None:
    """Its message, its tool's command and its answer, once each; its tokens once."""
    agent, word = start_agent(cli), nonce()
    agent.allow_tools()
    done = agent.ask(f"About {word}. [[tool:shell:echo made-{word}]] say: It says {word}.")
    assert (done.code, done.out) == (0, f"It says {word}.\n"), f"{done.err}\n{agent.screen()}"
    (task,) = agent.tasks()

    def found() -> list[tuple[str, str]]:
        told = agent.daemon.ctl("history", word, "--json")
        assert told.code == 0, told.err
        return sorted((item["kind"], item["task"]) for item in told.json)

    def used() -> dict[str, int]:
        rows = agent.daemon.ctl("usage", "--by", "task", "--json").json["rows"]
        return {row["task"]: row["output_tokens"] for row in rows if row["output_tokens"]}

    wanted = [("answer", task["id"]), ("message", task["id"]), ("tool", task["id"])]
    eventually(lambda: found() == wanted, f"{wanted} are found")
    tokens = eventually(used, "what it used is told")
    assert list(tokens) == [task["id"]]
    agent.daemon.kill9()
    agent.daemon.start()
    agent.daemon.ready(agent.name)
    assert (found(), used()) == (wanted, tokens)
