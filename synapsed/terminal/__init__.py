"""Reading of terminals: scanner, emulator, composer, dialogs, answers, verdict. Pure."""
