"""The nouns of synapsed: tasks, agents, events. Pure."""
