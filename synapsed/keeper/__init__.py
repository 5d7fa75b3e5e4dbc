"""The keeper: one small process per launch of an agent's program.

It spawns the program, is the only reader of the program's terminal, keeps the output in a spool (files on disk, read by
offset), writes each input once and records the exit. So the daemon may die and come back at any time.
`docs/keeper-protocol.md` is the specification.

This package uses only the standard library and ptyprocess, and nothing else of synapsed. Its modules avoid `typing`,
`dataclasses` and `asyncio`, because every import costs memory and time once per agent.
"""
