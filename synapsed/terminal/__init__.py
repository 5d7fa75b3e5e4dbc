"""What a terminal shows and means: scanner, emulator, composer, dialogs, answers, verdict. Pure."""
