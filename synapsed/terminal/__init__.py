"""Reads the terminals of programs: scanner, emulator, composer, dialogs, answers, verdict. Pure.

The composer is the place where a program takes a message; a turn is the work of a program on one message; a look is one
reading of the screen; the verdict is the activity of the program that the evidence shows; the spool is its output on
disk, read by offsets.
"""
