"""Translates between the types of A2A and those of synapsed: a library for all modules that speak A2A."""
