"""synapsectl: the person's tool for synapsed."""

__all__: "list[str]" = []
