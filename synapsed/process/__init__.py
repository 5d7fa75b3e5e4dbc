"""This process, and what it holds of the machine: its lock, its open files, its own files, who runs it."""
