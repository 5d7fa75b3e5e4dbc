"""The link (the daemon's object for one running program) to a program in a terminal: reads its output, types messages,
follows turns (the program's work on one message), answers prompts."""
