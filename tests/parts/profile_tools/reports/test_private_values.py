"""What is private on this machine: by the names of variables and settings, and by the look of values."""

from pathlib import Path

import pytest

from synapsed.parts.profile_tools.reports.private_values import names, secret_values

VALUE = "wJalrXUtnFEMIzzz"


def found(settings: object) -> set[str]:
    return {word.text for word in secret_values(settings)}


@pytest.mark.parametrize(
    "name",
    [
        *("PGPASSWORD", "MYSQL_PWD", "OPENAI_KEY", "GH_PAT", "DB_PASS", "APP_CREDENTIALS", "AWS_SECRET_ACCESS_KEY"),
        *("ANTHROPIC_AUTH_TOKEN", "SENTRY_DSN", "SESSION_COOKIE", "apiKey", "githubtoken", "SSH_PASSPHRASE", "MY_PIN"),
    ],
)
@pytest.mark.parametrize("value", ["sunflower", "/wJalrXUtnFEMI", "two words here"])
def test_a_name_of_secrets(name: str, value: str) -> None:
    assert value in found({name: value})
    assert value in found({"channels": [{"deep": {name: value}}]})


@pytest.mark.parametrize("name", ["PATH", "LANG", "EDITOR", "KEYMAP", "MONKEYS", "AI_AGENT", "ANTHROPIC_MODEL"])
def test_others_are_not(name: str) -> None:
    for value in ("vim", "/usr/bin:/bin", "en_US.UTF-8", "claude-code", "claude-sonnet-4-5-20250929"):
        assert found({name: value}) == set()


def test_a_path_that_is_there_is_none(tmp_path: Path) -> None:
    assert found({"APP_CREDENTIALS": str(tmp_path), "SSH_AUTH_SOCK": f"{tmp_path}:/"}) == set()


def test_what_looks_like_a_secret_is_one_under_any_name() -> None:
    assert found({"ANY": VALUE + "12"}) == {VALUE + "12"}
    assert found({"DATABASE_URL": "postgres://app:hunter2xy@localhost/db"}) == {"hunter2xy"}
    assert "hunter22" in found({"args": ["--verbose", "--api-key", "hunter22"]})
    assert "hunter22" in found({"mcp": {"args": ["--token=hunter22"], "env": {"A": "b"}}})


def test_names_of_the_person_and_not_of_everybody() -> None:
    assert "janedoe" in {word.text for word in names({"HOME": "/home/janedoe"})}
    assert "user" not in {word.text for word in names({"HOME": "/home/user"})}
