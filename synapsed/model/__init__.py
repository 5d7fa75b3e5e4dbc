"""The types of what synapsed deals with: tasks, agents, events. Pure."""
