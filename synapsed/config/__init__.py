"""The configuration: its sections, its files, the paths of all files of synapsed, and errors in files with their
place."""
