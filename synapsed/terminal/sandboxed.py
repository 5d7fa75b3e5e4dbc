"""The names with which programs of parts read a screen, in a process of its own that has no rights: the bytes that it
draws may come from anyone.

Importing them loads the emulator, which no module of the daemon's process does.
"""

from synapsed.process.sandbox import give_up_rights
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import Composer, Prompts
from synapsed.terminal.composer import ComposerState, read_composer
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.look import Look
from synapsed.terminal.observer import TerminalObserver
from synapsed.terminal.prompts import find_prompt
from synapsed.terminal.snapshot import Color, ScreenSnapshot
from synapsed.terminal.turn_signs import said_of_turn

__all__ = [
    "Color",
    "Composer",
    "ComposerState",
    "Look",
    "Profile",
    "Prompts",
    "Screen",
    "ScreenSnapshot",
    "TerminalObserver",
    "find_prompt",
    "give_up_rights",
    "read_composer",
    "said_of_turn",
]
