"""Prompts of programs that no profile describes: evidence that a line is read, learning a prompt, recognising it."""
