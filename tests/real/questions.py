"""What the scripted model asks the person, by each program's own tool, and keys that answer it."""

import json
from collections.abc import Mapping, Sequence

__all__ = ["ANSWERING", "ASK", "ASKING", "LISTS", "PLANNED", "PLANNING", "PROPOSED", "WORDS", "asking"]

QUESTIONS = {
    "questions": [
        {
            "question": question,
            "header": header,
            "multiSelect": header == "Sizes",
            "options": [{"label": label, "description": f"The {label.lower()} one"} for label in labels],
        }
        for question, header, labels in (
            ("Which colour do you like?", "Colour", ("Red", "Blue")),
            ("Which sizes do you need?", "Sizes", ("Small", "Large")),
        )
    ]
}
ASK = f"[[tool:AskUserQuestion:{json.dumps(QUESTIONS)}]] say: Thank you."
PROPOSED = "[[say:Here it is.\n\n<proposed_plan>\n# The plan\n\n1. Make the file\n2. Look at it\n</proposed_plan>]]"
PLAN = "# The plan\n\n1. Make the file\n2. Look at it\n"
PLANNED: Mapping[str, str] = {
    "claude": (
        f"[[tool:Write:{json.dumps({'file_path': 'PLAN-FILE', 'content': PLAN})}]] "
        "[[tool:ExitPlanMode:{}]] say: Thank you."
    ),
    "gemini": (
        f"[[tool:write_file:{json.dumps({'file_path': 'plan.md', 'content': PLAN})}]] "
        '[[tool:exit_plan_mode:{"plan_filename": "plan.md"}]] say: Thank you.'
    ),
}
PLANNING: Mapping[str, Sequence[str]] = {
    "claude": ("--permission-mode", "plan"),
    "gemini": ("--approval-mode", "plan"),
}
"""How it is started to plan."""


def _asked(question: str, *labels: str, **more: object) -> dict[str, object]:
    options = [{"label": label, "description": f"The {label.lower()} one"} for label in labels]
    return {"question": question, "header": question.split()[1].title(), "options": options, **more}


ASKING: Mapping[str, tuple[str, Sequence[dict[str, object]]]] = {
    "claude": ("AskUserQuestion", QUESTIONS["questions"]),
    "codex": (
        "request_user_input",
        [
            _asked("Which colour do you like?", "Red (Recommended)", "Blue", id="colour"),
            _asked("Which size do you need?", "Small", "Large", "Huge", id="size"),
        ],
    ),
    "gemini": (
        "ask_user",
        [
            _asked("Which colour do you like?", "Red", "Blue", type="choice"),
            {"question": "What name shall it have?", "header": "Name", "type": "text", "placeholder": "a name"},
        ],
    ),
    "opencode": (
        "question",
        [
            _asked("Which colour do you like?", "Red", "Blue"),
            _asked("Which sizes do you need?", "Small", "Large", multiple=True),
        ],
    ),
}
"""The tool by which the model asks the person, and two questions for it."""

WORDS = "\x1b[200~2 shades\nof green\x1b[201~"
LINE = f"\x1b[200~{' or '.join(f'a size of {n}' for n in range(12))}\x1b[201~"
ANSWERING: Mapping[str, Sequence[tuple[str, str]]] = {
    "claude": (
        ("3", "own words"),
        (f"\x15{WORDS}", "typed"),
        ("\r", "several of them"),
        ("\x1b[B" * 10 + "\x1b[A\x1b[A", "own words beside them"),
        (LINE, "typed beside them"),
        ("\x01\x1b[A", "left"),
        ("1", "chosen"),
        ("\x1b[B" * 10 + "\x1b[A\r", "look over"),
        ("1", "answered"),
    ),
    "codex": (
        ("\x1b[A", "the last of them"),
        ("\t", "own words"),
        (WORDS, "typed"),
        ("\r", "another"),
        ("\x1b[D", "the first again"),
        ("\x1b[C", "the other again"),
        ("2", "answered"),
    ),
    "gemini": (
        ("3", "own words"),
        (WORDS, "typed"),
        ("\r", "a text"),
        (WORDS, "text typed"),
        ("\r", "look over"),
        ("\r", "answered"),
    ),
    "opencode": (
        ("3", "own words"),
        (WORDS, "typed"),
        ("\r", "several of them"),
        ("2", "chosen"),
        ("3", "own words beside them"),
        (WORDS, "typed beside them"),
        ("\r", "left"),
        ("\t", "look over"),
        ("\r", "answered"),
    ),
}


def asking(cli: str, count: int = 2) -> str:
    """A message upon which the model asks the first of `ASKING`."""
    tool, questions = ASKING[cli]
    return f"[[tool:{tool}:{json.dumps({'questions': questions[:count]})}]] say: Thank you."


SCROLLED = [
    _asked("Which sizes do you need?", "Small", "Large", "Huge", type="choice", multiSelect=True),
    _asked("Which colour do you like?", "Red", "Blue", "Green", "White", type="choice"),
]
LISTS = f"[[tool:ask_user:{json.dumps({'questions': SCROLLED})}]] say: Thank you."
"""Questions of whose options gemini shows three at a time."""
