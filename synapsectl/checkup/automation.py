"""Schedules, rules, webhooks and sinks: what keeps them from their work."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from synapsectl.checkup.finding import NOTE, OK, WRONG, Finding, command

_STATUS = {"ok": OK, "idle": NOTE, "wrong": WRONG}

_TABLES = {"webhook": "[webhooks]", "sink": "[notify.sinks]"}


def look_at_automation(found: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    """`found` as `/control/automation` tells it. What is as it should be is counted, the rest is told one by one;
    a kind that nobody has configured is not mentioned."""
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for one in found:
        by_kind.setdefault(one["kind"], []).append(one)
    for kind, all_of_it in by_kind.items():
        odd = [one for one in all_of_it if one["state"] != "ok"]
        if fine := len(all_of_it) - len(odd):
            yield Finding(f"{kind}s", OK, f"{fine} as {'it' if fine == 1 else 'they'} should be")
        for one in odd:
            status = _STATUS.get(one["state"], WRONG)
            yield Finding(f"{kind} {one['name']}", status, one["problem"], _mend(kind, one))


def _mend(kind: str, one: Mapping[str, Any]) -> str:
    if one["source"] == "verb":
        return command("synapsectl", kind, "remove", one["name"]) + ", and add it again as it should be"
    reload = f"correct it under {_TABLES.get(kind, f'[[{kind}]]')} of config.toml, then 'synapsectl reload'"
    if kind == "sink":
        test = command("synapsectl", "notify", "test", one["name"])
        return f"see what {test} says; or {reload}"
    if kind == "webhook" and one["state"] == "wrong":
        return f"see that it answers, then 'synapsectl reload'; or {reload}"
    return reload
