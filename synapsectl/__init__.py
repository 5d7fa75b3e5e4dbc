"""synapsectl: the person's tool for synapsed.

Words of its modules: a task is a message and what became of it; a turn is a program's work on one message; a prompt is
a program's question to a person; an item is in the inbox and waits for a person; a keeper is the process that holds an
agent's terminal and outlives the daemon; a spool is a program's stored output. docs/words.md has the others.
"""

__all__: "list[str]" = []
