"""Profiles of programs: their contents, the library that holds them, and the release of a program that each is for."""
