"""What a dialog is about, by what it shows."""

from synapsed.model.about import About
from synapsed.parts.work_events.dialog_subject import shown_by
from tests.model.test_about import DIFF, LONGEST, PATCH

EDITS = f"Edit file\nf.txt\n1  short\n2 -{LONGEST}\n2 +one\n3 +two\nDo you want to make this edit to f.txt?"


def test_whole_rows_of_a_dialog_are_its_command() -> None:
    assert shown_by("Run it?\n$ npm  run\n  test --all", About(command="npm run test --all"))
    assert shown_by("Run it?\n" + "echo " + "x" * 100 + "…", About(command="echo " + "x" * 300))
    assert shown_by("Run it?\ntouch a\ntouch b && \\\n  touch c", About(command="touch a\ntouch b && \\\n  touch c"))
    assert shown_by("printf 'a\\tb' #  x    tab", About(command="printf 'a\\tb' # \u200b\u202e x\ttab"))
    for command in ("git status --short", "status", LONGEST, "2", ""):
        assert not shown_by(EDITS, About(command=command)), command
    assert not shown_by("Run it?\nls -la", About(command="ls"))


def test_a_dialog_shows_an_edit_by_its_file_and_a_line_of_it() -> None:
    assert shown_by(EDITS, About(diff=DIFF))
    assert not shown_by(EDITS, About(diff=DIFF.replace("f.txt", "other.txt")))
    assert not shown_by(EDITS, About(diff="--- f.txt\n+++ f.txt\n-another\n+else"))
    assert shown_by("Create file\nn.txt\nDo you?", About(diff="+++ a/n.txt"))
    assert shown_by("f.txt\nnew line", About(diff=PATCH))
    assert not shown_by(EDITS, About())
