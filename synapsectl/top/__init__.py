"""`synapsectl top`: the agents, the screen of one, its question, its tasks, a box for a message, and events."""
