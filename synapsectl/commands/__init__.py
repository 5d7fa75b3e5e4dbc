"""One module per verb, each with `configure(parser)` and `run(args, ctx) -> exit code`; only the one asked for is
imported."""

__all__: list[str] = []
