"""Runs A2A's compatibility kit, from a checkout of it, against a daemon with the scripted agent; tells what came of it.

    python -m tests.parts.a2a.kit.tck PATH [--kit 1.0|0.3] [--no-push] [--python PYTHON] [pytest arguments]

`PATH` is a checkout of a2aproject/a2a-tck: branch 1.0-dev, or for `--kit 0.3` tag 0.3.0.beta4, of which the mandatory
and the capability tests are run. `PYTHON` is an interpreter that has what the kit needs (see its pyproject.toml), by
default this one. Exits 1 if a test failed that is not in CONTRADICTIONS.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.parts.a2a.kit.house import kit_agent
from tests.support.daemon import ANY_PORTS

HOST_03 = "agent.local"

CONTRADICTIONS = {
    "test_agent_card_validates_against_schema": "5.7: unrecognized fields are to be ignored; the card has the seeds' "
    "`extensions` and the fields of 0.3 (A.2.2) besides those of 1.0",
    "CARD-EXT-001": "5.7: unrecognized fields are to be ignored; the extended card has those of 0.3 and the seeds' too",
    "test_returns_message_with_text_part": "3.1.1: an agent may return a Message, or a Task; these return tasks",
    "test_error_uses_aip193_format": "11.1, 11.6: application/a2a+json is what answers should have, errors too",
    "test_error_content_type": "11.1, 11.6: application/a2a+json is what answers should have, errors too",
}
"""Tests that want what the specification (1.0.1) does not, by a part of their name, and its section."""

CONTRADICTIONS_03 = {
    "test_push_notification_not_supported_error_32003_enhanced": "8.2: -32003 is for those who push nothing. "
    "The test takes all for such: it looks for `capabilities` beside the `result` that has the card",
    "test_authenticated_extended_card_without_auth": "4.3: who asks is known, on this machine by the connection; the "
    "card declares no scheme there. It takes a request without a header for somebody's who is not known",
    "test_extended_agent_card_endpoint_exists": "3.2, 7.10: GET /v1/card is HTTP+JSON's, which is not offered for 0.3; "
    "in JSON-RPC the extended card is a method",
    "test_extended_card_access_controls": "3.2, 4.3: as the two before",
}
"""Those of the kit of 0.3."""


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    outcome: str
    """passed, failed, skipped or xfailed."""
    why: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--kit", choices=["1.0", "0.3"], default="1.0")
    parser.add_argument("--no-push", action="store_true", help="the daemon offers no push notifications")
    parser.add_argument("--python", default=sys.executable)
    known, more = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="tck-") as home:
        report = Path(home) / "junit.xml"
        push = "enabled = false" if known.no_push else 'allow = ["loopback"]'
        config = f'{ANY_PORTS}allowed_hosts = ["{HOST_03}"]\n[a2a]\nrepeats = false\n[a2a.push]\n{push}\n'
        with kit_agent(Path(home) / "synapsed", config=config) as (_, endpoint):
            command = [known.python, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider"]
            command += ["-o", f"cache_dir={home}", f"--junitxml={report}"]
            command += _suite_10(endpoint) if known.kit == "1.0" else _suite_03(endpoint)
            env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
            subprocess.run([*command, *more], cwd=known.path, env=env, check=False)
        cases = list(read(report))
    return tell(cases, CONTRADICTIONS if known.kit == "1.0" else CONTRADICTIONS_03)


def _suite_10(endpoint: str) -> list[str]:
    return ["tests/compatibility/", f"--sut-host={endpoint}"]


def _suite_03(endpoint: str) -> list[str]:
    """It takes a card that says `localhost` for a leak, and the URLs of a card are those that the client used: so it is
    given a name (`names.py`). Where the URL that it is given has a `localhost` in it, it does without HTTPS."""
    url = f"http://{HOST_03}:{endpoint.rpartition(':')[2]}/a2a?localhost"
    return ["-p", "names", f"--sut-url={url}", "--test-scope=all", "tests/mandatory", "tests/optional/capabilities"]


def read(report: Path) -> Iterator[Case]:
    for case in ET.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        skipped, failed = case.find("skipped"), case.find("failure")
        failed = case.find("error") if failed is None else failed
        if failed is not None:
            yield Case(name, "failed", failed.get("message", ""))
        elif skipped is not None:
            expected = skipped.get("type") == "pytest.xfail"
            yield Case(name, "xfailed" if expected else "skipped", skipped.get("message", ""))
        else:
            yield Case(name, "passed")


def tell(cases: list[Case], contradictions: dict[str, str]) -> int:
    counts = Counter(case.outcome for case in cases)
    print(f"\n{len(cases)} tests: {', '.join(f'{number} {outcome}' for outcome, number in sorted(counts.items()))}")
    unexplained = 0
    for case in cases:
        if case.outcome in ("failed", "xfailed"):
            section = next((text for part, text in contradictions.items() if part in case.name), None)
            unexplained += section is None and case.outcome == "failed"
            print(f"{case.outcome}: {case.name}: {section or case.why[:300]}")
    reasons = Counter(case.why.partition("\n")[0] for case in cases if case.outcome == "skipped")
    for reason, number in reasons.most_common():
        print(f"{number} skipped: {reason[:200]}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
