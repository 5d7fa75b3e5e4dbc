"""Declares the part that uses programs' own app servers, which take messages and report turns.

A profile chooses it with `adapter = "app-server"`. `channel` is the client of such a server.
"""

from synapsed.kernel import Face

FACE = Face(name="app_server", adapters_in="synapsed.parts.app_server.channel")
"""Description of this part for the daemon, which reads it without loading the part's code."""
