"""All agents of a daemon: their directory, their common start, and the delivery of messages and replies.
`synapsed.agents` explains the words that the modules use."""
