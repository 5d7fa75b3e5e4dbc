"""Answers as blocks: what is what, and that a stream gives the same as the whole, however it is cut."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from synapsed.parts.answer_blocks.blocks import StreamParser, describe
from synapsed.parts.answer_blocks.fences import NESTING_MAX, Code, FenceReader, Piece, Prose
from synapsed.parts.answer_blocks.plain_blocks import Block, PlainReader
from synapsed.profiles.profile import Parsers
from tests.support.gated import first_of

ALL = Parsers()

LINES = st.sampled_from(
    [
        "",
        "",
        "  ",
        "\t",
        "prose",
        "    indented",
        "\tindented",
        "```",
        "````",
        "~~~",
        "~~~~",
        "```python",
        "``` js title=`x`",
        "~~~ `info`",
        " ```",
        "   ```",
        "    ```",
        "\t```",
        "``",
        "``` ",
        "```\t",
        "``` x```",
        "- item",
        "- ```",
        "  ```",
        "- - ```sh",
        "    ```sh",
        "1. one",
        "2. ```rust",
        "10) ten",
        "> quote",
        "> ```",
        ">```",
        ">",
        "> - ```",
        "<pre>",
        "</pre>",
        "<div>",
        "<!-- ",
        "-->",
        "<x>",
        "# heading",
        "===",
        "---",
        "***",
        "[foo]: /url",
        "[foo]:",
        "'title",
        "'",
        "| a | b |",
        "{",
        "}",
        '{"a": 1}',
        '{"a": [1,',
        "2]}",
        "[",
        "]",
        '"x"',
        "Error: no",
        "  more of it",
        "Traceback (most recent call last):",
        "ValueError: bad",
        "Created: a.py",
        "see [File: b.py]",
        "\0",
        "x\x0by\x0cz\u2028w",
    ]
)
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"])
TEXTS = st.lists(st.tuples(LINES, ENDS), max_size=30).map(lambda lines: "".join(a + b for a, b in lines))
PARSERS = st.builds(Parsers, code=st.booleans(), data=st.booleans(), files=st.booleans(), errors=st.booleans())


def streamed(text: str, cuts: list[int], spec: Parsers = ALL) -> list[Block]:
    parser = StreamParser(spec)
    blocks: list[Block] = []
    at = 0
    for cut in [*sorted(cut % (len(text) + 1) for cut in cuts), len(text)]:
        blocks += parser.feed(text[at:cut])
        at = cut
    return blocks + parser.flush()


def whole_fences(text: str) -> list[Piece]:
    """The library's word on a text that is known to its end (line breaks are newlines)."""
    lines = text.removesuffix("\n").split("\n") if text else []
    pieces: list[Piece] = []
    done = 0
    for token in MarkdownIt("commonmark", {"maxNesting": NESTING_MAX}).parse("\n".join(lines) + "\n"):
        if token.type == "fence" and token.map is not None:
            start, end = token.map
            pieces.append(Prose(tuple(lines[done:start])))
            pieces.append(Code(token.info.strip(), token.content, tuple(lines[start:end])))
            done = end
    pieces.append(Prose(tuple(lines[done:])))
    return [piece for piece in pieces if piece.lines]


def whole(text: str, spec: Parsers) -> list[Block]:
    """The blocks of a text that is known to its end, without the parser under test."""
    reader = PlainReader(spec)
    blocks: list[Block] = []
    for piece in whole_fences(text.replace("\r\n", "\n").replace("\r", "\n")):
        if isinstance(piece, Prose):
            blocks += [block for line in piece.lines for block in reader.feed(line)]
        elif spec.code:
            language, mime_type, file = describe(piece.info)
            code = piece.content.removesuffix("\n")
            told = {"language": language, "mimeType": mime_type}
            blocks += [*reader.end(), Block("code", file or "code", code, metadata=told)]
        else:
            blocks += reader.release()
            for line in piece.lines:
                reader.verbatim(line)
    return [*blocks, *reader.end()]


def joined(pieces: list[Piece]) -> list[Piece]:
    """With pieces of prose that follow each other as one."""
    result: list[Piece] = []
    for piece in pieces:
        if result and isinstance(piece, Prose) and isinstance(last := result[-1], Prose):
            result[-1] = Prose(last.lines + piece.lines)
        else:
            result.append(piece)
    return result


# --- laws ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=400)
@given(TEXTS, st.lists(st.integers(0, 2000), max_size=20), PARSERS)
@example("a\r\n```\r\nb\r\n```", [2, 7, 8], ALL)
def test_a_stream_gives_what_the_whole_gives_however_it_is_cut(text: str, cuts: list[int], spec: Parsers) -> None:
    assert streamed(text, cuts, spec) == whole(text, spec)


@given(st.text(alphabet='`~ \n\r->1.{}[]":a\t', max_size=120))
def test_character_by_character(text: str) -> None:
    assert streamed(text, list(range(len(text)))) == whole(text, ALL)


@pytest.mark.slow
@settings(max_examples=400)
@given(st.lists(LINES, max_size=40))
def test_fences_are_those_of_the_library(lines: list[str]) -> None:
    text = "".join(line + "\n" for line in lines)
    library = MarkdownIt("commonmark", {"maxNesting": NESTING_MAX})
    wanted = [(t.info.strip(), t.content) for t in library.parse(text) if t.type == "fence"]
    reader = FenceReader()
    pieces = [piece for line in lines for piece in reader.feed(line)] + reader.end()
    assert [(p.info, p.content) for p in pieces if isinstance(p, Code)] == wanted
    assert joined(pieces) == whole_fences(text)
    assert [line for piece in pieces for line in piece.lines] == lines


@given(TEXTS)
def test_with_everything_off_the_text_is_one_block(text: str) -> None:
    blocks = streamed(text, [], Parsers(code=False, data=False, files=False, errors=False))
    assert all((block.type, block.name) == ("text", "output") for block in blocks)
    assert len(blocks) == bool(text.replace("\0", "x").strip(" \t\n\r\x0b\x0c\u2028"))


def test_a_parser_may_be_used_again() -> None:
    parser = StreamParser(ALL)
    assert parser.feed("```\nx\r") == []
    assert [block.type for block in parser.flush()] == ["code"]
    assert parser.feed("\ny") == []
    assert [block.text for block in parser.flush()] == ["y"]


def test_blocks_come_as_soon_as_they_are_whole() -> None:
    parser = StreamParser(ALL)
    assert parser.feed("結果:\n```py") == []
    assert parser.feed("thon\nprint('hello')\n") == []
    assert [block.text for block in parser.feed("```\n続き")] == ["結果:", "print('hello')"]
    assert [block.text for block in parser.flush()] == ["続き"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    first_of(
        [
            "- ```\n  x\n  ```\n\n" * 3000,
            "```\nx\n```\n\n" * 3000,
            "{\n" * 20_000,
            '{"a":\n' * 20_000,
            "prose\n\n" * 10_000,
            "> ```\n" * 10_000,
            "`" * 50_000,
            "Created: " * 5_000,
            "Traceback (most recent call last):\n" * 5_000,
            "[File: " * 35_000,
            "[File:" + " " * 200_000,
            '{"' + '\\"' * 120_000,
            "Created: /" + " ()" * 80_000 + "\x00",
        ],
        4,
    ),
    ids=lambda text: repr(text[:20]),
)
@pytest.mark.timeout(240)
def test_the_cost_grows_with_the_text_and_not_with_its_square(text: str) -> None:
    assert streamed(text, list(range(0, len(text), 4096))) == whole(text, ALL)


# --- cases -----------------------------------------------------------------------------------------------------------


def shown(text: str, **off: bool) -> list[tuple[str, str, str]]:
    return [(block.type, block.name, block.text) for block in streamed(text, [], Parsers(**off))]


CASES: list[tuple[str, list[tuple[str, str, str]]]] = [
    ("", []),
    ("\n \n", []),
    ("just text", [("text", "output", "just text")]),
    (
        "```python\nprint('hello')\n```\n結果: hello",
        [("code", "code", "print('hello')"), ("text", "output", "結果: hello")],
    ),
    ("````md\n```\nx\n```\n````", [("code", "code", "```\nx\n```")]),
    ("~~~\n```\n~~~", [("code", "code", "```")]),
    ("```\nnever closed\n", [("code", "code", "never closed")]),
    ("   ```\n     x\n   ```", [("code", "code", "  x")]),
    ("    ```\n    x", [("text", "output", "    ```\n    x")]),
    ("``` not `info`\n", [("text", "output", "``` not `info`")]),
    (
        "1. do\n\n   ```sh\n   ls\n   ```\n2. end",
        [("text", "output", "1. do"), ("code", "code", "ls"), ("text", "output", "2. end")],
    ),
    (
        "\n".join("  " * depth + "- x" for depth in range(40)) + "\n```\ny\n```",
        [("text", "output", "\n".join("  " * depth + "- x" for depth in range(40))), ("code", "code", "y")],
    ),
    ("> ```\n> x\n\nafter", [("code", "code", "x"), ("text", "output", "after")]),
    ("<pre>\n```\n</pre>", [("text", "output", "<pre>\n```\n</pre>")]),
    ("```json\n{}\n```", [("code", "code", "{}")]),
    ("```\n```", [("code", "code", "")]),
    ('{"key": "value"}', [("data", "json_output", '{"key": "value"}')]),
    (
        'It is\n{\n  "a": "}{",\n  "b": [1, 2]\n}\nso.',
        [
            ("text", "output", "It is"),
            ("data", "json_output", '{\n  "a": "}{",\n  "b": [1, 2]\n}'),
            ("text", "output", "so."),
        ],
    ),
    ('{"a": 1}\n{"b": 2}', [("data", "json_output", '{"a": 1}'), ("data", "json_output", '{"b": 2}')]),
    ('["a", "b"]', [("data", "json_output", '["a", "b"]')]),
    ("[1] a footnote\n[1]\n[a](b)", [("text", "output", "[1] a footnote\n[1]\n[a](b)")]),
    ('{"a": 1} and more', [("text", "output", '{"a": 1} and more')]),
    ('{"a": NaN}', [("text", "output", '{"a": NaN}')]),
    ('{"a": 1e999}', [("text", "output", '{"a": 1e999}')]),
    ('{"a": "\\ud800"}', [("text", "output", '{"a": "\\ud800"}')]),
    ('{"a":\n\n1}', [("text", "output", '{"a":\n\n1}')]),
    ("{\nError: x", [("text", "output", "{\nError: x")]),
    (
        "Created: /tmp/test.py",
        [("text", "output", "Created: /tmp/test.py"), ("file", "/tmp/test.py", "File reference: /tmp/test.py")],
    ),
    (
        "- **Wrote:** `a b.txt` (3 lines)\nCreated: ./my notes.md\nsee [file: x.py], too",
        [
            ("text", "output", "- **Wrote:** `a b.txt` (3 lines)\nCreated: ./my notes.md\nsee [file: x.py], too"),
            ("file", "a b.txt", "File reference: a b.txt"),
            ("file", "./my notes.md", "File reference: ./my notes.md"),
            ("file", "x.py", "File reference: x.py"),
        ],
    ),
    ("Created: a table of contents", [("text", "output", "Created: a table of contents")]),
    ("I wrote: nothing", [("text", "output", "I wrote: nothing")]),
    ("Error: it broke\n  at x\nafter", [("text", "error", "Error: it broke\n  at x"), ("text", "output", "after")]),
    ("An Error: not at the beginning", [("text", "output", "An Error: not at the beginning")]),
    ("errors: none", [("text", "output", "errors: none")]),
]


@pytest.mark.parametrize(("text", "wanted"), CASES, ids=[repr(text[:30]) for text, _ in CASES])
def test_what_is_what(text: str, wanted: list[tuple[str, str, str]]) -> None:
    assert shown(text) == wanted


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("Error: x", "ERROR"),
        ("**Error:** x", "ERROR"),
        ("❌ Error: x", "ERROR"),
        ("fatal: not a git repository", "FATAL"),
        ("Fatal error: x", "FATAL_ERROR"),
        ("error[E0382]: moved", "E0382"),
        ("Error (ENOENT): no such file", "ENOENT"),
        ("Error 404: not found", "404"),
        ("ValueError: bad", "ValueError"),
        ("java.lang.NullPointerException: x", "NullPointerException"),
        ("エラー：失敗しました", "ERROR"),
    ],
)
def test_errors_have_codes(line: str, code: str) -> None:
    (block,) = streamed(line, [], ALL)
    assert (block.name, block.metadata) == ("error", {"isError": True, "errorCode": code})


def test_a_traceback_is_one_error() -> None:
    text = 'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\n    f()\nmod.BadError: no'
    (block,) = streamed(text, [], ALL)
    assert (block.text, block.metadata) == (text, {"isError": True, "errorCode": "BadError"})


def test_json_is_given_as_data() -> None:
    (block,) = streamed('{"a": [1, 2.5, null, "x"]}', [], ALL)
    assert block.data == {"a": [1, 2.5, None, "x"]}


TEXT = '```\nx\n```\n{"a": 1}\nError: x\n[File: y]'


@pytest.mark.parametrize(
    ("off", "types"),
    [
        ({}, ["code", "data", "error", "output", "file"]),
        ({"code": False}, ["output", "data", "error", "output", "file"]),
        ({"data": False}, ["code", "output", "error", "output", "file"]),
        ({"errors": False}, ["code", "data", "output", "file"]),
        ({"files": False}, ["code", "data", "error", "output"]),
    ],
)
def test_each_can_be_switched_off(off: dict[str, bool], types: list[str]) -> None:
    def kind(block: Block) -> str:
        return block.name if block.type == "text" else block.type

    assert [kind(block) for block in streamed(TEXT, [], Parsers(**off))] == types


@pytest.mark.parametrize(
    ("info", "wanted"),
    [
        ("", ("text", "text/plain", None)),
        ("python", ("python", "text/x-python", None)),
        ("Python", ("Python", "text/x-python", None)),
        ("py3k", ("py3k", "text/plain", None)),
        ("ts", ("ts", "text/typescript", None)),
        ("c++", ("c++", "text/x-c++src", None)),
        ("bash", ("bash", "text/x-shellscript", None)),
        ('js title="a b.js"', ("js", "text/javascript", "a b.js")),
        ("python:src/a.py", ("python", "text/x-python", "src/a.py")),
        ("{.json file=x.json}", ("json", "application/json", "x.json")),
    ],
)
def test_info_strings(info: str, wanted: tuple[Any, ...]) -> None:
    assert describe(info) == wanted
