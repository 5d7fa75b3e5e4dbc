"""One module per verb, each with `configure(parser)` and `run(args, ctx) -> exit code`; only the module of the given
verb is imported."""

__all__: list[str] = []
