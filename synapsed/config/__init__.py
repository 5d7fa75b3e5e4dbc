"""The configuration: its sections, its files, where all that is synapsed's stands, and errors told by place."""
