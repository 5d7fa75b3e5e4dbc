"""One agent: its process, its turns and its mailbox, and what it needs of a person. All of it runs in its actor."""
