"""The keeper: one small process per launch of an agent's program.

It spawns the program, alone reads its terminal, keeps the output in a spool, writes each input once and records the
exit, so that the daemon may die and come back at any time. `docs/keeper-protocol.md` is its specification.

Only the standard library and ptyprocess are used, and nothing of synapsed outside this package; modules here avoid
`typing`, `dataclasses` and `asyncio`, because every import is paid for once per agent.
"""
