"""Asks systemd what calendar events mean, and keeps its answers: `python -m tests.parts.schedules.record`.

Each line of `systemd.tsv` is an event, the instant after which it was asked for, and the instants of its next
occurrences (or `invalid`). Instants are seconds since the epoch. No instant to start from lies in an hour that comes
twice: systemd's own answer there depends on which of the two it takes it for. And a step of hours or minutes that has
no end divides the day or the hour: with others, systemd 252 leaves out the first time after a month's end (`0/11:33`).
"""

import random
import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

RECORDED = Path(__file__).parent / "systemd.tsv"
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "America/Sao_Paulo",
    "Asia/Kolkata",
    "Asia/Tehran",
    "Pacific/Apia",
    "UTC",
)
BASES = tuple(
    datetime(*day, 3, 17, 5, tzinfo=UTC)
    for day in (
        (2026, 3, 27),
        (2026, 10, 23),
        (2026, 3, 6),
        (2026, 10, 30),
        (2026, 4, 2),
        (2026, 10, 1),
        (2026, 4, 22),
        (2026, 10, 28),
        (2018, 2, 15),
        (2018, 11, 2),
        (2011, 12, 28),
        (2027, 12, 30),
        (2028, 2, 27),
    )
)
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
NAMES = ("minutely", "hourly", "daily", "weekly", "monthly", "quarterly", "semiannually", "yearly")
ITERATIONS = 7


def component(rng: random.Random, low: int, high: int, *, whole: int = 0) -> str:
    first, second = rng.randint(low, high), rng.randint(low, high)
    step = rng.choice([number for number in range(1, max(2, (high - low) // 2)) if whole % number == 0])
    return rng.choice(
        ["*"] * 3
        + [f"{first}"] * 4
        + [f"{first},{second}", f"{first}..{second}", f"{first}/{step}", f"{first}..{second}/{step}", f"{low}/{step}"]
    )


def event(rng: random.Random) -> str:
    if rng.random() < 0.06:
        return rng.choice(NAMES)
    words = []
    if rng.random() < 0.35:
        one, other = rng.choice(DAYS), rng.choice(DAYS)
        words.append(rng.choice([one, f"{one},{other}", f"{one}..{other}", f"{one.lower()}-{other}", f"{one}day"]))
    if rng.random() < 0.5:
        month, joint = component(rng, 1, 12), rng.choice("---~")
        day = component(rng, 1, 31 if joint == "-" else 29)
        year = rng.choice(["*-", "*-", "", f"{rng.randint(2026, 2030)}-", "26..29-"])
        words.append(f"{year}{month}{joint}{day}")
    if not words or rng.random() < 0.8:
        hour = rng.choice([component(rng, 0, 23, whole=24), component(rng, 0, 4, whole=24)])
        second = rng.choice(["", "", f":{rng.randint(0, 61)}"])
        words.append(f"{hour}:{component(rng, 0, 59, whole=60)}{second}")
    return " ".join(words)


def ask(text: str, base: datetime) -> list[int] | None:
    """What systemd says; None where it does not understand."""
    done = subprocess.run(
        [
            "systemd-analyze",
            "calendar",
            f"--iterations={ITERATIONS}",
            f"--base-time={base:%Y-%m-%d %H:%M:%S} UTC",
            text,
        ],
        env={"TZ": "UTC", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        return None
    told = re.findall(r"(?:Next elapse|Iter\. #\d+): \w+ ([\d-]+ [\d:]+) UTC", done.stdout)
    return [int(datetime.strptime(f"{at} +0000", "%Y-%m-%d %H:%M:%S %z").timestamp()) for at in told]


def main(seed: int = 1, count: int = 900) -> None:
    rng = random.Random(seed)
    lines = []
    while len(lines) < count:
        text = f"{event(rng)} {rng.choice(ZONES)}"
        base = rng.choice(BASES) + timedelta(hours=rng.randint(0, 24))
        answer = ask(text, base)
        told = "invalid" if answer is None else " ".join(map(str, answer))
        lines.append(f"{text}\t{int(base.timestamp())}\t{told}")
    RECORDED.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
