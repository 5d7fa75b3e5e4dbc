"""Draws the screens of all programs, in processes without rights ("processes of screens", docs/adr/0033). Such a
process gets a program's output, and returns looks (a look is one reading of a screen)."""
