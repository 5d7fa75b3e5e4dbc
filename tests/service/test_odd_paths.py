"""Units that are written for systemd, read by a real one: paths with every character that means something to it."""

from pathlib import Path

import pytest

from synapsectl.service.systemd import command_words, file_line, folder_line, quoted_word
from tests.support.daemon import eventually
from tests.support.systemd import UserManager

pytestmark = [pytest.mark.night]

NAMES = (
    *("plain", "a b", "a$HOME", "a$$b", "${HOME}", 'a"b', "a'b", "a\\b", "a\\", "50%h", "ü", "a;b", "ends with "),
    *("a[b]", "a*b", "a?b", "a\\sb"),
    "all $X \"q\" 'p' \\n %h; #",
)
TELL = '#!/bin/sh\nprintf \'%s\\n\' "$0" "$@" "$PWD" "$ODD" "$READ" > "$(dirname "$0")/told"\n'


def test_words_and_folders_arrive_as_they_are(user_manager: UserManager) -> None:
    units = user_manager.home / ".config/systemd/user"
    units.mkdir(parents=True, exist_ok=True)
    expected: dict[Path, list[str]] = {}
    for number, name in enumerate(NAMES):
        folder = user_manager.home / "odd" / name
        folder.mkdir(parents=True)
        program = folder / "python"
        program.write_text(TELL)
        program.chmod(0o755)
        (folder / "variables").write_text("READ=it is read\n")
        (units / f"odd-{number}.service").write_text(
            "[Service]\nType=oneshot\n"
            f"WorkingDirectory={folder_line(str(folder))}\n"
            f"ExecStart={command_words([str(program), '-P', name, '$HOME', '${HOME}'])} run\n"
            f"Environment={quoted_word(f'ODD={name}')}\n"
            f"EnvironmentFile={file_line(folder / 'variables')}\n"
        )
        words = [str(program), "-P", name, "$HOME", "${HOME}", "run"]
        expected[folder / "told"] = [*words, str(folder), name, "it is read"]
    user_manager.systemctl("daemon-reload")
    for number, (told, wanted) in enumerate(expected.items()):
        user_manager.systemctl("start", f"odd-{number}.service", check=False)
        eventually(told.exists, f"{NAMES[number]!r} has run: {user_manager.log()[-1000:]}")
        assert told.read_text() == "\n".join(wanted) + "\n"
