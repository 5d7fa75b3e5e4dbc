"""The daemon's side of keepers: starts, finds and talks to them. The keeper itself is `synapsed.keeper`."""
