"""Splits an answer into blocks (S2, S3): code, JSON documents, errors, references to files, and the text around them.

`StreamParser` returns each block as soon as it is complete while the answer grows; the result does not depend on where
the text was cut. The grammar of fenced code is CommonMark's (`fences`); text outside of it is read line by line
(`plain_blocks`). The info string of a fence has language and file name (`describe`).
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from synapsed.model.task import BlockKinds
from synapsed.parts.answer_blocks.fences import Code, FenceReader, Piece, Prose
from synapsed.parts.answer_blocks.plain_blocks import Block, PlainReader
from synapsed.shared.regex import regex


class StreamParser:
    """Parses a growing text: `feed` returns the complete blocks, in order; `flush` returns the rest at the end. Only
    fences, blank lines around blocks, and the kind of line breaks are lost."""

    def __init__(self, kinds: BlockKinds) -> None:
        self._kinds = kinds
        self._fences = FenceReader()
        self._plain = PlainReader(kinds)
        self._rest: list[str] = []
        """The last line so far, in pieces."""
        self._carriage_return = False
        """True if the text so far ends with a carriage return, which ends the line: a newline after it does not end
        another."""

    @property
    def held(self) -> int:
        """Returns the number of characters that are held back, which the next piece may require to be read again."""
        return self._fences.held + sum(map(len, self._rest))

    def feed(self, chunk: str) -> list[Block]:
        """Takes a further piece of the text, cut anywhere."""
        if self._carriage_return and chunk:
            chunk = chunk.removeprefix("\n")
            self._carriage_return = False
        self._carriage_return = self._carriage_return or chunk.endswith("\r")
        *lines, rest = chunk.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        if not lines:
            self._rest += [rest] if rest else []
            return []
        lines[0] = "".join(self._rest) + lines[0]
        self._rest = [rest] if rest else []
        return [block for line in lines for piece in self._fences.feed(line) for block in self._read(piece)]

    def flush(self) -> list[Block]:
        """Ends the text; the parser is then ready for another."""
        pieces = self._fences.feed("".join(self._rest)) if self._rest else []
        self._rest, self._carriage_return = [], False
        blocks = [block for piece in [*pieces, *self._fences.end()] for block in self._read(piece)]
        return [*blocks, *self._plain.end()]

    def _read(self, piece: Piece) -> Iterator[Block]:
        if isinstance(piece, Prose):
            for line in piece.lines:
                yield from self._plain.feed(line)
        elif self._kinds.code:
            yield from self._plain.end()
            yield _code(piece)
        else:
            yield from self._plain.release()
            for line in piece.lines:
                self._plain.verbatim(line)


def _code(code: Code) -> Block:
    language, mime_type, file = describe(code.info)
    return Block(
        "code",
        file or "code",
        code.content.removesuffix("\n"),
        metadata={"language": language, "mimeType": mime_type},
    )


_LANGUAGE = regex(r"\{?\.?(?P<language>[^\s:,;{}=\"']+)")
_FILE = regex(
    r"(?:\b(?:title|file|filename|name|path)=(?:\"(?P<double>[^\"]+)\"|'(?P<single>[^']+)'|(?P<bare>[^\s}]+))"
    r"|^[\w+#.-]+:(?P<after>[^\s:]+\.\w+)(?:\s|$))"
)

_ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "py": "python",
        "python3": "python",
        "pycon": "python",
        "js": "javascript",
        "mjs": "javascript",
        "cjs": "javascript",
        "node": "javascript",
        "jsx": "javascript",
        "ts": "typescript",
        "tsx": "typescript",
        "yml": "yaml",
        "jsonc": "json",
        "json5": "json",
        "htm": "html",
        "sh": "shell",
        "zsh": "shell",
        "fish": "shell",
        "console": "shell",
        "shellscript": "shell",
        "shell-session": "shell",
        "md": "markdown",
        "rs": "rust",
        "rb": "ruby",
        "golang": "go",
        "kt": "kotlin",
        "cs": "csharp",
        "c#": "csharp",
        "c++": "cpp",
        "cxx": "cpp",
        "hpp": "cpp",
        "h": "c",
        "patch": "diff",
        "docker": "dockerfile",
        "pl": "perl",
        "ps1": "powershell",
        "mysql": "sql",
        "postgresql": "sql",
        "plpgsql": "sql",
        "sqlite": "sql",
        "tex": "latex",
    }
)

_MIME_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "python": "text/x-python",
        "javascript": "text/javascript",
        "typescript": "text/typescript",
        "json": "application/json",
        "yaml": "text/yaml",
        "html": "text/html",
        "css": "text/css",
        "sql": "text/x-sql",
        "bash": "text/x-shellscript",
        "shell": "text/x-shellscript",
        "c": "text/x-csrc",
        "cpp": "text/x-c++src",
        "csharp": "text/x-csharp",
        "csv": "text/csv",
        "diff": "text/x-diff",
        "dockerfile": "text/x-dockerfile",
        "go": "text/x-go",
        "java": "text/x-java",
        "kotlin": "text/x-kotlin",
        "latex": "text/x-tex",
        "lua": "text/x-lua",
        "makefile": "text/x-makefile",
        "markdown": "text/markdown",
        "perl": "text/x-perl",
        "php": "text/x-php",
        "powershell": "text/x-powershell",
        "ruby": "text/x-ruby",
        "rust": "text/x-rust",
        "scala": "text/x-scala",
        "scss": "text/x-scss",
        "svg": "image/svg+xml",
        "swift": "text/x-swift",
        "toml": "application/toml",
        "xml": "application/xml",
    }
)

_NONE = "text"
"""Language of a block that names no language."""


def describe(info: str) -> tuple[str, str, str | None]:
    """Returns language (as written), MIME type and file name of a block with this info string. Known spellings:
    `python`, `python title="a.py"`, `python:src/a.py`, `{.python file=a.py}`."""
    named = _LANGUAGE.match(info)
    language = named["language"] if named else _NONE
    found = _FILE.search(info)
    file = next((text for text in found.groups() if text), None) if found else None
    key = language.lower()
    return language, _MIME_TYPES.get(_ALIASES.get(key, key), "text/plain"), file
