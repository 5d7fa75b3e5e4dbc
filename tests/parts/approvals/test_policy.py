"""Rules of an approval policy: what they allow, what they deny, and that a shell cannot be smuggled past them."""

import re
import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.parts.approvals.policy import Decision, Policy, Rule, ToolCall


def bash(command: str) -> ToolCall:
    return ToolCall(tool="Bash", command=command, input={"command": command})


def policy(*allow: str, deny: tuple[str, ...] = (), default: str = "escalate") -> Policy:
    return Policy.of(default, allow, deny)  # type: ignore[arg-type]  # the words are the test's


GIT = policy("Bash(git status*)")


@pytest.mark.parametrize("command", ["git status", "git status --short", "  git status -- 'a b'  ", "git status\t-s"])
def test_an_allowed_command(command: str) -> None:
    assert GIT.decide(bash(command)) == Decision("allow", "Bash(git status*)")


@pytest.mark.parametrize(
    "command",
    [
        "git status; rm -rf /",
        "git status && rm -rf /",
        "git status || rm -rf /",
        "git status | sh",
        "git status & rm -rf /",
        "git status\nrm -rf /",
        "git status\r\nrm -rf /",
        "git status $(rm -rf /)",
        "git status `rm -rf /`",
        "git status ${x:-$(rm)}",
        "git status > /etc/passwd",
        "git status >> ~/.bashrc",
        "git status < <(rm -rf /)",
        "git status <<EOF\nEOF",
        "(git status)",
        "PATH=. git status",
        "sudo git status",
        "git statu",
        "\u2028git status",
        "git status\u2028rm",
        "git status\x85rm",
    ],
)
def test_what_a_shell_could_make_of_it_is_asked_about(command: str) -> None:
    assert GIT.decide(bash(command)) == Decision("escalate")


def test_a_compound_command_is_allowed_where_the_rule_says_so() -> None:
    rules = policy("Bash(git log * | head *)", "Bash(make test > /dev/null)")
    assert rules.decide(bash("git log --oneline | head -3")).verdict == "allow"
    assert rules.decide(bash("make test > /dev/null")).verdict == "allow"
    assert rules.decide(bash("git log --oneline; rm x | head -3")).verdict == "escalate"
    assert rules.decide(bash("git log a | head -3 | sh")).verdict == "escalate"


@pytest.mark.parametrize(
    "command",
    ["rm -rf /", "cd /; rm -rf /", "true && rm -rf /", "echo $(rm -rf /)", "X=1 Y=2 rm -rf /", "a | rm b", "a\nrm b"],
)
def test_deny_looks_at_every_part_and_wins(command: str) -> None:
    rules = policy("Bash", deny=("Bash(curl *)", "Bash(rm *)"), default="allow")
    assert rules.decide(bash(command)) == Decision("deny", "Bash(rm *)")


@pytest.mark.parametrize(
    "command",
    [
        "git  push",
        "git\tpush --force",
        "git 'push'",
        'g"i"t pu\\sh',
        "git \\\n push",
        "/usr/bin/git push",
        "GIT_SSH='ssh -x' A=\"b c\" git push",
        "PATH+=:. git push",
        "if true; then git push; fi",
        "while ! git push; do sleep 1; done",
        "2>/dev/null git push",
        "> log 2>&1 git push",
        "git fetch && time git push",
        "command git push",
    ],
)
def test_deny_knows_other_ways_to_write_the_same_words(command: str) -> None:
    rules = policy("Bash(*git *)", "Bash", deny=("Bash(git push*)",), default="allow")
    assert rules.decide(bash(command)) == Decision("deny", "Bash(git push*)")


@pytest.mark.parametrize("command", ["git pull", "git log push", "echo git push", "git commit -m 'then git push'"])
def test_deny_means_no_other_command(command: str) -> None:
    assert policy(deny=("Bash(git push*)",), default="allow").decide(bash(command)).verdict == "allow"


@given(st.text(alphabet=st.sampled_from([*"ab '\"\\\n\t<>=&;|!/"]), max_size=40))
def test_deny_reads_any_text(command: str) -> None:
    rules = policy(deny=("Bash(rm x)",), default="allow")
    assert rules.decide(bash(command)).verdict == "allow"
    assert rules.decide(bash(f"{command}\n;rm  x")).verdict == "deny"


def test_deny_costs_no_time() -> None:
    began = time.perf_counter()
    for text in ("'", '"', "\\", "a'\"", "> ", "x= ", "\\\n", ";"):
        policy(deny=("Bash(rm *)",)).decide(bash(text * (100_000 // len(text))))
    assert time.perf_counter() - began < 30


def test_the_first_rule_that_matches_is_named() -> None:
    rules = policy("Read", "bash(git *)", "Bash(git status*)")
    assert rules.decide(bash("git status")).rule == "bash(git *)"


def test_a_tool_without_pattern_is_allowed_whatever_it_says() -> None:
    assert policy("Bash").decide(bash("a; b")).verdict == "allow"
    assert policy("Bash(*)").decide(bash("a; b")).verdict == "escalate"
    assert policy("mcp__files__*").decide(ToolCall(tool="mcp__files__read")).verdict == "allow"


def test_a_path_leads_out_of_no_folder() -> None:
    rules = policy("Edit(src/*)")
    assert rules.decide(ToolCall(tool="Edit", subjects=("src/a/b.py",))).verdict == "allow"
    assert rules.decide(ToolCall(tool="Edit", subjects=("src/../../etc/passwd",))).verdict == "escalate"
    assert rules.decide(ToolCall(tool="Edit", subjects=("src/a\nb",))).verdict == "escalate"


def edit(path: str) -> ToolCall:
    return ToolCall(tool="Edit", subjects=(path,), folder="/home/me/work", home="/home/me")


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("src/*", "/home/me/work/src/a/b.py"),
        ("src/*", "src/a.py"),
        ("src/*", "./src/../src/a.py"),
        ("/home/me/work/*", "src/a.py"),
        ("~/work/*", "src/a.py"),
        ("~/work/*", "/home/me/work/a.py"),
        (".env", "/home/me/work/src/../.env"),
        ("*.pem", "/etc/x.pem"),
        ("../shared/*", "/home/me/shared/a"),
        ("../shared/*", "src/../../shared/a"),
    ],
)
def test_a_path_is_the_same_however_it_is_written(pattern: str, path: str) -> None:
    assert policy(f"Edit({pattern})").decide(edit(path)).verdict == "allow"
    assert policy(deny=(f"Edit({pattern})",), default="allow").decide(edit(path)).verdict == "deny"


@pytest.mark.parametrize(
    "path", ["/home/me/work/src/../.env", "src/../../x", "/home/me/work/srcs", "/src/a", "a/src/b"]
)
def test_a_path_that_is_elsewhere_is_not_allowed(path: str) -> None:
    assert policy("Edit(src/*)").decide(edit(path)).verdict == "escalate"


@pytest.mark.parametrize("path", ["//etc/x", "/tmp/a://../../etc/x", "a://../../../../../etc/x", " /etc/x", "/etc/x\n"])
def test_no_way_of_writing_a_path_slips_past_what_is_denied(path: str) -> None:
    assert policy(deny=("Edit(/etc/*)",), default="allow").decide(edit(path)).verdict == "deny"
    assert policy("Edit(/home/me/*)").decide(edit(path)).verdict == "escalate"


def test_blanks_around_a_path_may_be_taken_away_by_the_program() -> None:
    assert policy("Edit(/home/me/work/*)").decide(edit(" ../../.bashrc")).verdict == "escalate"


def test_of_several_things_each_is_to_be_allowed_and_none_denied() -> None:
    patch = ToolCall(tool="Edit", subjects=("src/a", "secret/b"), folder="/home/me/work", home="/home/me")
    assert policy("Edit(src/*)").decide(patch).verdict == "escalate"
    assert policy("Edit(s*)").decide(patch).verdict == "allow"
    assert policy("Edit(s*)", deny=("Edit(secret/*)",)).decide(patch).verdict == "deny"
    both = ToolCall(tool="Write", command="src/x", subjects=("/etc/passwd",), folder="/f", home="/h")
    assert policy("Write(src/*)").decide(both).verdict == "escalate"
    assert policy(deny=("Write(/etc/*)",), default="allow").decide(both).verdict == "deny"


def test_a_rule_that_leads_out_of_the_folder_leads_no_further() -> None:
    assert policy("Edit(../shared/*)").decide(edit("../shared/../../etc/passwd")).verdict == "escalate"


def test_an_address_is_no_path() -> None:
    call = ToolCall(tool="Fetch", subjects=("https://example.org/a/../b",), folder="/f", home="/h")
    assert policy("Fetch(https://example.org/a/*)").decide(call).verdict == "escalate"
    assert policy(deny=("Fetch(https://example.org/a/*)",), default="allow").decide(call).verdict == "deny"


def test_what_the_program_does_not_say_is_asked_about() -> None:
    rules = policy("Edit(src/*)", deny=("Fetch(http:*)",), default="allow")
    assert rules.decide(ToolCall(tool="Edit")).verdict == "allow", "the default"
    assert rules.decide(ToolCall(tool="Fetch")) == Decision("escalate", "Fetch(http:*)")


@pytest.mark.parametrize("text", ["", "Bash(", "Bash()", "Bash( )", "Ba sh(x)", "(x)", "Bash(x) y", "x" * 3000])
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no rule"):
        Rule.parse(text)


def test_stars_cost_no_time() -> None:
    pattern = "Bash(" + "a*" * 200 + "b)"
    began = time.perf_counter()
    assert policy(pattern).decide(bash("a" * 100_000)).verdict == "escalate"
    assert time.perf_counter() - began < 30


TEXT = st.text(alphabet=st.sampled_from([*"ab *?.[](){}|;&$`<>\\'\"\n\r\t/-=", "\u2028"]), max_size=30)


def reference(pattern: str, text: str) -> bool:
    """A glob, the slow and plain way."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(reference(pattern[1:], text[n:]) for n in range(len(text) + 1) if harmless(text[:n]))
    if not text:
        return False
    return (harmless(text[0]) if pattern[0] == "?" else pattern[0] == text[0]) and reference(pattern[1:], text[1:])


def harmless(text: str) -> bool:
    return not re.search(r"[;&|<>()$`\n\r\u2028]", text)


@given(pattern=st.text(alphabet="ab*?;", min_size=1, max_size=8), text=st.text(alphabet="ab;", max_size=10))
def test_matching_is_that_of_a_glob(pattern: str, text: str) -> None:
    if pattern.strip():
        rule = Rule("", "Bash", pattern)
        assert rule.allows(bash(text)) == reference(pattern, text)


@given(TEXT, TEXT)
def test_nothing_that_begins_another_command_is_ever_allowed_by_a_wildcard(before: str, after: str) -> None:
    rules = policy("Bash(git status*)", "Bash(ls *)", "Bash(cat ?*)")
    for operator in (";", "&&", "||", "|", "&", "\n", "$(", "`", ">", "<"):
        assert rules.decide(bash(f"git status{before}{operator}{after}")).verdict == "escalate" or not after.strip()
        assert rules.decide(bash(f"ls x{operator} {after}x")).verdict == "escalate"


@given(st.text(max_size=40), st.text(max_size=40))
def test_deny_wins_over_any_allow(before: str, after: str) -> None:
    rules = policy("Bash", "Bash(*)", deny=("Bash(rm *)",), default="allow")
    assert rules.decide(bash(f"{before};rm {after}x")).verdict == "deny"


@given(st.text(max_size=60))
def test_parsing_never_fails_in_another_way(text: str) -> None:
    try:
        rule = Rule.parse(text)
    except ValueError:
        return
    assert Rule.parse(rule.text) == rule


@given(st.text(alphabet=string.printable, max_size=40))
def test_no_rules_leave_everything_to_a_person(command: str) -> None:
    assert Policy().silent
    assert Policy().decide(bash(command)) == Decision("escalate")
