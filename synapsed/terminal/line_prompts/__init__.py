"""Prompts of programs that no profile describes: evidence that a line is read, what is learned, what is recognised."""
