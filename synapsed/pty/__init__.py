"""The link to a program in a terminal: reads its output, types messages, follows turns, answers prompts."""
