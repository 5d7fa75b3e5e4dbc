"""The names with which programs of parts read a screen, in a process of its own that has no rights: the bytes that it
draws may come from anyone. Importing them loads the emulator, which no module of the daemon's process does."""

from synapsed.process.sandbox import give_up_rights
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import Composer, Prompts
from synapsed.terminal.composer import ComposerState, read_composer
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.look import Look
from synapsed.terminal.observer import TerminalObserver
from synapsed.terminal.prompts import find_prompt
from synapsed.terminal.psp import Record, parse_report
from synapsed.terminal.redraw import sgr
from synapsed.terminal.scanner import (
    EditingBegan,
    ProgressChanged,
    ScanEvent,
    Scanner,
    ShellPrompted,
    StatusReported,
    TerminalReset,
)
from synapsed.terminal.snapshot import Cell, Color, ScreenSnapshot
from synapsed.terminal.turn_signs import said_of_turn

__all__ = [
    "Cell",
    "Color",
    "Composer",
    "ComposerState",
    "EditingBegan",
    "Look",
    "Profile",
    "ProgressChanged",
    "Prompts",
    "Record",
    "ScanEvent",
    "Scanner",
    "Screen",
    "ScreenSnapshot",
    "ShellPrompted",
    "StatusReported",
    "TerminalObserver",
    "TerminalReset",
    "find_prompt",
    "give_up_rights",
    "parse_report",
    "read_composer",
    "said_of_turn",
    "sgr",
]
