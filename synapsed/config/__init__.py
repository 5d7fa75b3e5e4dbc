"""The configuration: its sections, its files, the paths of synapsed's files, and errors in files with their place."""
