"""When a program rests after its model has answered, and its hooks, which may send that back to work, have run."""

from dataclasses import replace

import pytest

from synapsed.library import ProfileLibrary
from synapsed.model.agent import Activity
from synapsed.pty.rest_after_hooks import RestAfterHooks
from synapsed.terminal.composer import ComposerState
from synapsed.terminal.look import Look
from synapsed.terminal.snapshot import ScreenSnapshot
from synapsed.terminal.verdict import Verdict
from tests.pty.turn_terminal import SCREEN

AT_WORK = Verdict(activity=Activity.BUSY, evidence="title: x", source="title")
COMING_TO_REST = Verdict(activity=Activity.BUSY, evidence="quiet: not yet", source="quiet")
AT_REST = Verdict(activity=Activity.READY, evidence="composer: empty", source="composer", settled=True)
