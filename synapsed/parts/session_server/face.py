"""Programs' own HTTP servers, which take messages and report sessions; `adapter = "session-server"` in a profile."""

from synapsed.kernel import Face

FACE = Face(name="session_server", adapters_in="synapsed.parts.session_server.delivery")
"""Description of this part for the daemon, which reads it without loading the part's code."""
