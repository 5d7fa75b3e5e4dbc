"""Declares the part that uses programs' own HTTP servers, which take messages and report sessions.

A profile chooses it with `adapter = "session-server"`. `channel` is the client of such a server.
"""

from synapsed.kernel import Face

FACE = Face(name="session_server", adapters_in="synapsed.parts.session_server.delivery")
"""Description of this part for the daemon, which reads it without loading the part's code."""
