"""All agents of a daemon: who there is, how they start together, how a message finds its agent and a reply its way."""
