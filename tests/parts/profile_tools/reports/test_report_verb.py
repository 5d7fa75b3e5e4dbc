"""A report is made of what the daemon says of an agent: nothing that is private is in it, in any writing."""

import base64
import json
import os
import re
from typing import Any
from urllib.parse import quote

import pytest

from synapsed.errors import InvalidRequest, NotReady
from synapsed.parts.profile_tools.reports import drawing, report_verb
from synapsed.parts.profile_tools.reports.private_words import PrivateWords
from synapsed.parts.profile_tools.reports.report import read
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile
from tests.parts.profile_tools.reports.made import BEGAN, KEY, PI, cast, of_pi

SECRETS = {
    "environment": "Sunflower/Tr0mbone;9",
    "settings": "Umbrella+Carr1age!7",
    "deep": "Marmalade~Bicycl3=5",
    "argument": "Windmill_Accord10n",
    "given": "Porcupine Symphony 42",
    "title": "ghp_T1tleAbCdEfGhIjKlMnOpQrStUvWxYz0123",
    "link": "ghp_L1nkAbCdEfGhIjKlMnOpQrStUvWxYz01234",
    "clipboard": "ghp_Cl1pAbCdEfGhIjKlMnOpQrStUvWxYz01234",
    "screen": "ghp_Scr3enAbCdEfGhIjKlMnOpQrStUvWxYz012",
    "wrapped": "ghp_Wr4ppedAbCdEfGhIjKlMnOpQrStUvWxYz01",
    "typed": "ghp_Typ3dAbCdEfGhIjKlMnOpQrStUvWxYz0123",
    "evidence": "ghp_Ev1denceAbCdEfGhIjKlMnOpQrStUvWxYz0",
    "says": "ghp_S4ysAbCdEfGhIjKlMnOpQrStUvWxYz01234",
    "named": "Trampoline9Orchid",
    "mail": "jane.roe@private.example",
}


def forms(secret: str) -> set[str]:
    """The secret as it stands, and as it may be written."""
    data = secret.encode()
    coded = {base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()}
    for before in (b"a", b"ab"):
        coded.add(base64.b64encode(before + data).decode()[4:-4])
    return {
        secret,
        secret[::-1],
        json.dumps(secret)[1:-1],
        quote(secret, safe=""),
        data.hex(),
        *(c.rstrip("=") for c in coded),
    }


def planted() -> dict[str, Any]:
    """A report of an agent into which each of them came by its way."""
    s = SECRETS
    coded = base64.b64encode(s["clipboard"].encode()).decode()
    typed = "".join(f"\x1b[30;{3 + at}H{letter}\x1b[1;1H" for at, letter in enumerate(s["typed"]))
    width = 17
    box = "".join(
        f"\x1b[{20 + row};40H│ {s['wrapped'][row * width : (row + 1) * width].ljust(width)} │ text" for row in range(3)
    )
    before = (
        f"\x1b]0;run {s['title']}\x07\x1b]8;;https://x.example/{s['link']}\x07a link\x1b]8;;\x07"
        f"\x1b]52;c;{coded}\x07\x1b]1337;File=name={coded}:{coded}\x07\x1b]7501;state=working:app=pi:msg={coded}\x07"
        f"use {s['screen'][:20]}\x1b[1m{s['screen'][20:]}\x1b[m; curl -u me:{s['named']} x; {s['mail']}\r\n"
        f"{s['environment']} {s['settings']} {s['deep']} {s['argument']} {s['given'].lower()}\r\n"
        f"{base64.b64encode(s['environment'].encode()).decode()} {quote(s['settings'], safe='')}{box}{typed}\x1b[12;1H"
    )
    profile = Profile.model_validate(
        {
            **PI.model_dump(mode="json", exclude_none=True),
            "env": {"PGPASSWORD": s["settings"]},
            "args": ["--api-key", s["argument"]],
            "mcp": {"files": {"x.json": {"servers": [{"headers": {"X-Auth-Token": s["deep"]}}]}}},
        }
    )
    return of_pi(
        profile,
        before=before,
        environ={"MYSQL_PWD": s["environment"], "HOME": "/home/janeroe"},
        words=[s["given"]],
        says=f"it had {s['says']}",
        status={
            "evidence": f"not at the cursor: '{s['evidence']}'",
            "explain": [{"channel": "title", "says": s["title"][:30], "since": None, "decides": True}],
            "prompt": {"prompt": f"run with {s['evidence']}?", "options": [["1", s["argument"]]]},
            "held": f"/home/janeroe/{s['deep']}",
        },
    )


def test_of_what_is_planted_nothing_is_in_it() -> None:
    made = planted()
    text = made["report"]
    report = read(text.encode())
    drawn = report.raw().decode()
    flat = re.sub(r"\x1b(?:\[[^@-~]*[@-~]|\][^\x1b]*\x1b\\)", "", drawn)
    places = (
        text,
        json.dumps(json.loads(text)),
        drawn,
        flat,
        "".join(flat.split()),
        json.dumps(made, ensure_ascii=False),
    )
    for name, secret in SECRETS.items():
        parts = {"".join(secret.split())[at : at + 8] for at in range(4, len("".join(secret.split())) - 7)}
        for form in forms(secret) | parts:
            assert not [place for place in places if form in place], (name, form)
    assert "janeroe" not in text
    assert report.masked.keys() >= {"secret", "e-mail", "your words", "value of a setting"}
    assert report.recording.reads["activity"] == "busy"


def test_a_profile_is_there_as_far_as_it_reads_screens() -> None:
    shared = read(of_pi()["report"].encode()).profile
    assert shared.keys() <= report_verb.READS
    assert shared.keys() >= {"composer", "busy", "prompts"}


@pytest.mark.parametrize("name", ProfileLibrary.builtin().names())
def test_a_shipped_profile_has_nothing_that_is_masked(name: str) -> None:
    profile = (
        ProfileLibrary.builtin().get(name).model_dump(mode="json", exclude_none=True, include=set(report_verb.READS))
    )
    assert drawing.cut(PrivateWords().mask_json(profile)) == profile


def test_of_pipes_and_of_one_without_output_there_is_none() -> None:
    piped = PI.model_copy(update={"transport": "pipes"})
    with pytest.raises(InvalidRequest, match="--explain"):
        of_pi(piped)
    head = cast([(BEGAN, "x")]).splitlines()[0]
    with pytest.raises(NotReady, match="nothing yet"):
        of_pi(cast=f"{head}\n")


@pytest.mark.night
def test_where_it_begins() -> None:
    assert of_pi()["start"] == "launch"
    assert of_pi(limit=10)["start"] == "later"


def test_the_last_launch_is_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        report_verb,
        "process_facts",
        lambda pid: (BEGAN + 50, {"MY_TOKEN": "Sunflower"}, ["x", "--api-key", "Umbrella"]),
    )
    made = of_pi(cast=cast([(BEGAN, "the one before"), (BEGAN + 51, "the Sunflower, Umbrella now")]))
    assert (made["start"], made["seen"]) == ("launch", ["the xxxxxxxxx, xxxxxxxx now"])


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85", "\x0b"])
def test_other_ends_of_lines_in_the_output_are_part_of_it(end: str) -> None:
    assert of_pi(cast=cast([(BEGAN, f"a{end}b"), (BEGAN + 1, "c")]))["seen"]


def test_the_variables_of_the_running_program_are_known() -> None:
    began, environ, arguments = report_verb.process_facts(os.getpid())
    assert (began > BEGAN, environ.get("PATH"), bool(arguments)) == (True, os.environ.get("PATH"), True)
    assert report_verb.process_facts(2**22 + 1) == (0.0, {}, [])


@pytest.mark.night
def test_what_masking_does_to_it_is_said() -> None:
    assert of_pi()["altered"] is False
    masked = of_pi(words=["⠋"])
    assert (masked["altered"], masked["reads"]["activity"]) == (True, "ready")
    assert KEY not in of_pi(before=f"{KEY}\r\n")["report"]


def test_what_a_person_says_is_not_cut() -> None:
    said = "it was still compiling; " * 200
    assert len(said) > drawing.CUT
    assert read(of_pi(says=said)["report"].encode()).says == said


def test_a_variable_that_is_not_utf_8_is_masked_as_a_terminal_shows_it() -> None:
    """Python has such bytes as lone surrogates, which nothing can write."""
    value = b"Sunflower-\xff\xfe-Trombone".decode("utf-8", "surrogateescape")
    shown = "Sunflower-\ufffd\ufffd-Trombone"
    made = of_pi(before=f"{shown}\r\n", environ={"MY_TOKEN": value}, says=f"a {value} \ud800", words=["a\udcff"])
    assert "x" * len(shown) in made["seen"], made["seen"]
    assert "Trombone" not in made["report"]
