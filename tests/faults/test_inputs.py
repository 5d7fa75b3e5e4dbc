"""Inputs that once ended an emulator: the screen of the product survives each, within its bounds.

`bytes-*` and `lines-*` ended pyghostty without the bounds. `seed-*` ended evp in an hour of fuzz (docs/adr/0062): made
again from their seeds, with other random contents of pictures and titles; `-shortest` is what of it still ends evp.
"""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

INPUTS = sorted((Path(__file__).parent / "inputs").glob("*.json.xz"))


def test_all_are_here() -> None:
    assert len([file for file in INPUTS if not file.name.startswith("seed-")]) == 5
    assert {file.name[:10] for file in INPUTS if file.name.startswith("seed-")} == {
        "seed-37014",
        "seed-37026",
        "seed-37039",
    }


@pytest.mark.parametrize("file", INPUTS, ids=lambda file: file.name.removesuffix(".json.xz"))
def test_the_screen_survives_what_ended_an_emulator(file: Path) -> None:
    command = [sys.executable, "-m", "tests.faults.emulator_fuzz", "--replay", str(file)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
