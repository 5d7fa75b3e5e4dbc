"""All agents of a daemon: their directory, their common start, the way of a message to its agent and of a reply
back."""
