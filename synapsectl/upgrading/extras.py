"""Names the command that installs an extra of synapsed, as the installer of this program takes it; and looks for
Textual, which `top` draws with and a packager may leave out (the extra `tui`)."""

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

from synapsectl.upgrading.installation import BASE, NAME, Installation, Installer, commands, find_installation

_FOR_PIP = re.compile(rf"pip install '{NAME}\[([a-z]+)\]'")
"""The command in messages of modules that do not know the installer."""
_SISTER = "packages/synapsed-fleet"
"""Folder in a source tree with the distribution that the extras `fleet` and `broker` bring."""
_OF_SISTER = {"fleet": "", "broker": "[broker]"}
"""Maps those extras to the sister's own extra."""


def for_this_installer(text: str) -> str:
    """Returns the text with the command of this installation's installer in place of pip's."""
    if "pip install" not in text or _FOR_PIP.search(text) is None:
        return text
    installed = find_installation()
    return _FOR_PIP.sub(lambda found: extra_command(installed, found[1]), text)


def extra_command(installed: Installation, extra: str) -> str:
    """Returns the command line that installs the extra beside synapsed, from the source that synapsed came from."""
    if installed.installer is Installer.CHECKOUT:  # of a developer, who has chosen the environment
        return f"pip install '{NAME}[{extra}]'"
    source, more = installed.source, list[str]()
    if source.endswith(".whl"):
        more = ["--find-links", str(Path(source).parent)]
    elif source and extra in _OF_SISTER and (Path(source) / _SISTER).is_dir():
        sister = f"{Path(source) / _SISTER}{_OF_SISTER[extra]}"
        more = ["--with", sister] if installed.installer in _TOOLS else [sister]
    source = f"{NAME}[{extra}] @ {source}" if "://" in source else f"{source or NAME}[{extra}]"
    return f"{_beginning(installed)} {shlex.join([*more, source])}"


_TOOLS = (Installer.UV_TOOL, Installer.UVX)


def _beginning(installed: Installation) -> str:
    """Returns the first words, in a shell's form: a person types them."""
    python = shlex.quote(installed.python)
    match installed.installer:
        case Installer.UV_TOOL | Installer.UVX:
            return f"uv tool install --python {shlex.quote(BASE)} --force"
        case Installer.PIPX:
            return f"pipx runpip {NAME} install"
        case Installer.PIPX_RUN:  # never into the cache's own environment
            return f"{commands(installed)[-1]} && pipx runpip {NAME} install"
        case Installer.UV:
            return f"uv pip install --python {python}"
        case Installer.DEBIAN:
            return f"sudo {python} -m pip install --target {shlex.quote(str(installed.place))}"
        case _:
            return f"{python} -m pip install"


TUI_INSTALL = "pip install 'synapsed[tui]'"
TUI_MISSING = "Textual is not installed: 'synapsectl top' draws with it, 'inbox' and 'list --watch' do without"


def has_tui() -> bool:
    """Returns True if Textual is installed, without importing it."""
    return find_spec("textual") is not None
