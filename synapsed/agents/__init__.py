"""One agent: its process, its turns, its mailbox, and the questions and alerts for its person.

All of this runs in the agent's actor, the one task that decides everything about the agent. Words that the modules use:
A launch is one start of the agent's program; its keeper is the process that holds the program's terminal or pipes and
outlives the daemon; its link is the object by which the daemon talks to the program. A program is adopted if a new
daemon takes it over from an earlier one, and parked if it is ended while it is idle, until the next message. A turn is
the program's work on one task. The composer is the program's input line. A part is an optional module of the daemon."""
