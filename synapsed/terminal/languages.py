"""What the info string of a fenced block says: language, file name; and which MIME type a language has."""

import re
from collections.abc import Mapping
from types import MappingProxyType

_LANGUAGE = re.compile(r"\{?\.?(?P<language>[^\s:,;{}=\"']+)")
_FILE = re.compile(
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
"""Language of a block that names none."""


def describe(info: str) -> tuple[str, str, str | None]:
    """Language (as it is written), MIME type and file name of a block with this info string. Known spellings:
    `python`, `python title="a.py"`, `python:src/a.py`, `{.python file=a.py}`."""
    named = _LANGUAGE.match(info)
    language = named["language"] if named else _NONE
    found = _FILE.search(info)
    file = next((text for text in found.groups() if text), None) if found else None
    key = language.lower()
    return language, _MIME_TYPES.get(_ALIASES.get(key, key), "text/plain"), file
