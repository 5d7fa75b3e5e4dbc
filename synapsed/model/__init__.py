"""The types of the things that synapsed works with: tasks, agents, events. Pure.

Words: a link is the object by which the daemon talks to a program, a keeper the process that holds the program's
terminal or pipes, a spool the program's output on disk, a turn the program's work on one task, a channel a way to learn
of a program besides its screen."""
