"""Programs' own app servers, which take messages and report turns; `adapter = "app-server"` in a profile."""

from synapsed.kernel import Face

FACE = Face(name="app_server", adapters_in="synapsed.parts.app_server.channel")
"""Description of this part for the daemon, which reads it without loading the part's code."""
