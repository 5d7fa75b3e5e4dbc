"""The daemon's process, and its resources of the machine: its lock, its open files, its own files, its user."""
