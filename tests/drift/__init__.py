"""The newest releases of the programs, against their profiles: `python -m tests.drift` (`make drift`)."""
