"""The configuration: its sections, its files, the paths of everything that synapsed keeps, and errors with their
place."""
