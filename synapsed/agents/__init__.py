"""One agent: its process, its turns, its mailbox, and the questions and alerts for its person. All of it runs in its
actor."""
