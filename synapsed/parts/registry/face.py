"""The part `registry`: the registry of live agents, one small file each in `~/.a2a/registry/`, for programs that look
for agents there."""

from synapsed.kernel import Face

FACE = Face(name="registry", opens="synapsed.parts.registry.following")
