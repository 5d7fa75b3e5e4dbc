"""The faults of a night and a bad day, each injected for real and counted: `make test-faults`."""
