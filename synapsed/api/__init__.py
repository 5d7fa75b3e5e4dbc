"""HTTP, SSE and WebSocket in front of the supervisor's `Control` (docs/http-api.md, docs/security.md).

One application for the main listener and the Unix socket, a second one, with an agent's routes at the root, shared by
all agents' own ports. A request passes, in this order:

1. `problems`: whatever is raised below becomes one shape of error, in one place;
2. `security`: `Host`, `Origin`, content type and length, then whose connection it is (`peer_lookup`, `rights`);
3. the route (`routes/`, one file per resource), which asks `Control` and renders.
"""
