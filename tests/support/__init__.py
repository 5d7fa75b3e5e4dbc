"""What several suites need to run the real daemon."""
