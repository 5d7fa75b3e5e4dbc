"""The daemon's side of keepers, the processes that hold the programs: starts and finds keepers, and talks to them. The
keeper itself is `synapsed.keeper`."""
