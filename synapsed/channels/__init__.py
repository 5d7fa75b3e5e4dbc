"""What is read off other channels than the screen: hooks, transcripts, programs' own servers."""
