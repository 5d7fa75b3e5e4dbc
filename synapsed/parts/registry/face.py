"""Publishes live agents as one small file each in `~/.a2a/registry/`, for programs that look for agents there."""

from synapsed.kernel import Face, WantedBy

FACE = Face(
    name="registry",
    opens="synapsed.parts.registry.following",
    wanted=WantedBy(agents=lambda _: True, files=lambda paths: [paths.registry]),
)
"""Description of this part for the daemon, which reads it without loading the part's code."""
