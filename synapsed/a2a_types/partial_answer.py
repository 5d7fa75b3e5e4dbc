"""The known state of a task elsewhere, put together from pieces and whole states. Pure, and without A2A's types."""

from dataclasses import dataclass, replace
from typing import Any

from synapsed.model.task import ANSWER_ID, PROGRESS, Artifact, TaskState, TextPart


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A task over there, as it is. `own` is what another synapsed says of it (`metadata.synapsed`). `artifacts` is None
    where only its state is told. `mark` tells one saying of the same words from another; empty if nothing does."""

    id: str
    context_id: str
    state: TaskState
    artifacts: list[Artifact] | None
    said: str
    own: dict[str, Any]
    mark: str = ""


@dataclass(frozen=True, slots=True)
class ArtifactPiece:
    """A piece of an artifact, or the whole artifact in place of what was told; of the task `task_id`."""

    artifact: Artifact
    append: bool
    task_id: str
    context_id: str


class Heard:
    """`snapshot` is the task as far as it is known, None before the first word."""

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None

    def take(self, told: Snapshot | ArtifactPiece) -> Snapshot:
        """Take in what is told next. Returns the task with it."""
        known = self.snapshot
        if isinstance(told, ArtifactPiece):
            before = known or Snapshot(told.task_id, told.context_id, TaskState.WORKING, [], "", {})
            self.snapshot = replace(before, artifacts=_with(before.artifacts or [], told))
        elif told.artifacts is None:
            self.snapshot = replace(told, artifacts=known.artifacts if known is not None else [])
        else:
            self.snapshot = told
        return self.snapshot

    @property
    def so_far(self) -> str:
        """The beginning of the answer; empty where what there is may be no part of it."""
        there = self.snapshot
        if there is None or not there.artifacts:
            return ""
        begun = any(artifact.artifact_id == ANSWER_ID for artifact in there.artifacts)
        if not begun and any(artifact.artifact_id.startswith(f"{PROGRESS}-") for artifact in there.artifacts):
            return ""
        return answer_of(there)[0]


def _with(artifacts: list[Artifact], told: ArtifactPiece) -> list[Artifact]:
    kept = list(artifacts)
    for index, artifact in enumerate(kept):
        if artifact.artifact_id == told.artifact.artifact_id:
            parts = [*artifact.parts, *told.artifact.parts]
            kept[index] = artifact.model_copy(update={"parts": parts}) if told.append else told.artifact
            return kept
    return [*kept, told.artifact]


def answer_of(there: Snapshot) -> tuple[str, list[Artifact]]:
    """The answer's text, whole; and where it is made of more than one text, its artifacts as blocks."""
    artifacts = there.artifacts or []
    exact = next((artifact for artifact in artifacts if artifact.artifact_id == ANSWER_ID), None)
    shown = [exact] if exact is not None else artifacts
    text = "\n\n".join(artifact.text for artifact in shown if artifact.text) or there.said
    plain = len(shown) == 1 and all(isinstance(part, TextPart) for part in shown[0].parts)
    blocks = [artifact for artifact in artifacts if artifact is not exact and artifact.parts]
    if plain and exact is None:
        return text, []
    if exact is None and any(not isinstance(part, TextPart) for artifact in blocks for part in artifact.parts):
        blocks = [one for artifact in blocks if (one := _without_text(artifact)).parts]  # it is in the answer
    return text, [
        Artifact.block(number, type=artifact.type, name=artifact.name, parts=artifact.parts, metadata=artifact.metadata)
        for number, artifact in enumerate(blocks, 1)
    ]


def _without_text(artifact: Artifact) -> Artifact:
    return artifact.model_copy(update={"parts": [part for part in artifact.parts if not isinstance(part, TextPart)]})
