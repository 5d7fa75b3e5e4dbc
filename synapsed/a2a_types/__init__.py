"""What A2A says and what synapsed says, each as the other: a library for all who speak it."""
