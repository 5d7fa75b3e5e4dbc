"""Tests that run the real agent programs against a scripted model, in a network namespace that has only loopback."""
