"""Profiles of programs: what they may say, the library of them, and which release of a program each is for."""
