"""What is open over all agents, by the events of the log."""

from synapsed.attention import board as boards
from synapsed.attention.board import Board
from synapsed.model.agent import ProcessState
from synapsed.model.events import (
    REMOVED,
    AttentionChanged,
    Event,
    EventData,
    InputRequired,
    StateChanged,
    ToolExecution,
)
from synapsed.model.task import Prompt, PromptOption

BASH = Prompt(
    prompt_id="p1",
    type="permission",
    prompt="Bash command\n\n   npm  run\n   test --all\n   Run the tests\n\nDo you want to proceed?",
    options=[PromptOption(key="1", label="Yes"), PromptOption(key="2", label="No")],
)


class Log:
    """Events with ids, given to a board as they come."""

    def __init__(self) -> None:
        self.board = Board()
        self.all: list[Event] = []

    def tell(self, data: EventData, agent: str = "a", task: str | None = None) -> Event:
        number = len(self.all) + 1
        event = Event(id=number, at=float(number), agent_id=agent, task_id=task, context_id=None, data=data)
        self.all.append(event)
        self.board.take(event)
        return event

    def asked(self, prompt: Prompt = BASH, agent: str = "a", name: str = "i1", kind: str = "permission") -> Event:
        self.tell(InputRequired(prompt=prompt), agent)
        told = AttentionChanged(
            id=name, state="opened", kind=kind, question=prompt.prompt[:20], prompt_id=prompt.prompt_id
        )
        return self.tell(told, agent)

    def commands(self) -> list[str | None]:
        return [item.command for item in self.board.items]


def call(**told: object) -> ToolExecution:
    given: dict[str, object] = {"tool_name": "Bash", "status": "started", "call_id": "c1"} | told
    return ToolExecution.model_validate(given)


def test_an_item_has_the_whole_prompt_and_the_very_command() -> None:
    log = Log()
    log.tell(call(input={"description": "Run the tests", "command": "npm run test --all"}))
    log.asked()
    (item,) = log.board.items
    assert (item.question, item.prompt_id, item.kind, item.since) == (BASH.prompt, "p1", "permission", 3.0)
    assert item.command == "npm run test --all"
    assert item.prompt is not None
    assert [option.key for option in item.prompt.options] == ["1", "2"]


def test_a_call_that_is_told_after_its_dialog() -> None:
    log = Log()
    log.asked()
    assert log.commands() == [None]
    log.tell(call(input={"command": "rm -rf /tmp/x"}, call_id="another"))
    assert log.commands() == [None]
    log.tell(call(input={"command": ["npm", "run", "test", "--all"]}))
    assert log.commands() == ["npm run test --all"]


def test_a_call_that_is_over_is_not_what_is_asked_about() -> None:
    log = Log()
    log.tell(call(input={"command": "npm run test --all"}))
    log.tell(call(status="completed", output={"text": "ok"}))
    log.asked()
    assert log.commands() == [None]


def test_a_call_without_a_command_is_what_the_dialog_shows_of_it() -> None:
    log = Log()
    asked = BASH.model_copy(update={"prompt": "Edit file\n src/main.py\n\nDo you want to make this edit?"})
    log.tell(call(input={"file_path": "src/main.py", "old": "x = 1", "no": 1}))
    log.asked(asked)
    assert log.commands() == ["src/main.py"]


def test_a_long_command_of_which_the_dialog_shows_the_beginning() -> None:
    log = Log()
    command = "echo " + "x" * 400
    log.tell(call(input={"command": command}))
    log.asked(BASH.model_copy(update={"prompt": f"Run this?\n {command[:120]}…"}))
    assert log.commands() == [command]


def test_the_command_of_another_agent_is_not_taken() -> None:
    log = Log()
    log.tell(call(input={"command": "npm run test --all"}), agent="b")
    log.asked()
    assert log.commands() == [None]


def test_it_is_over_when_it_is_answered_or_gone() -> None:
    log = Log()
    for number, state in enumerate(("answered", "gone")):
        log.asked(agent=f"a{number}", name=f"i{number}")
        assert len(log.board) == 1
        log.tell(AttentionChanged(id=f"i{number}", state=state, kind="permission"), f"a{number}")
        assert log.board.items == []


def test_with_its_agent_everything_of_it_goes() -> None:
    log = Log()
    log.asked()
    log.asked(agent="b", name="i2")
    log.tell(StateChanged(state=REMOVED))
    assert [item.id for item in log.board.items] == ["i2"]


def test_kinds_of_an_older_log() -> None:
    log = Log()
    for number, (was, now) in enumerate(
        {"trust": "question", "login": "sign_in", "screen": "unreadable", "selection": "question"}.items()
    ):
        log.asked(name=f"i{number}", kind=was)
        assert log.board.items[-1].kind == now


def test_a_new_daemon_finds_the_same() -> None:
    log = Log()
    log.asked(agent="b", name="answered")
    log.tell(AttentionChanged(id="answered", state="answered", kind="permission"), "b")
    log.tell(call(input={"command": "npm run test --all"}))
    opened = log.asked()
    log.tell(StateChanged(state=ProcessState.RUNNING))
    again = Board()
    again.restore([opened], [event for event in log.all if event.agent_id == "a"])
    assert again.items == log.board.items
    assert again.running_since("a") == float(len(log.all))


def test_it_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr(boards, "ITEMS_MAX", 3)
    log = Log()
    log.asked(name="asks")
    for number in range(5):
        log.tell(AttentionChanged(id=f"f{number}", state="opened", kind="failure"))
    assert [item.id for item in log.board.items] == ["asks", "f3", "f4"]


def test_a_call_that_no_item_is_about_leaves_the_items_as_they_are() -> None:
    log = Log()
    log.asked()
    log.tell(AttentionChanged(id="i2", state="opened", kind="alert", question="It is full."))
    before = log.board.items
    log.tell(call(input={"command": "make"}))
    assert all(one is other for one, other in zip(log.board.items, before, strict=True))
    log.tell(call(call_id="c2", input={"command": "npm run test --all"}))
    assert log.commands() == ["npm run test --all", None]
    log.tell(AttentionChanged(id="i1", state="gone", kind="permission", question="x"))
    assert log.commands() == [None]
    log.tell(StateChanged(state=REMOVED))
    assert log.board.items == []
