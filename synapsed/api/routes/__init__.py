"""One file per resource. Each has `routes(prefix)`: its table of `RouteDef` under `prefix` (`/agents/{agent}`, or empty
on an agent's own port)."""
