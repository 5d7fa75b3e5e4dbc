"""Puts the known state of a task elsewhere together, from pieces and whole states. Pure, and without A2A's types."""

from dataclasses import dataclass, replace
from typing import Any

from synapsed.model.task import ANSWER_ID, PROGRESS, Artifact, TaskState, TextPart


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The present state of a task elsewhere. `own` is the additional data of another synapsed (`metadata.synapsed`).
    `artifacts` is None if only the task's state was reported. `mark` distinguishes two questions in the same words;
    empty if the agent gives no such mark."""

    id: str
    context_id: str
    state: TaskState
    artifacts: list[Artifact] | None
    said: str
    own: dict[str, Any]
    mark: str = ""


@dataclass(frozen=True, slots=True)
class ArtifactPiece:
    """A piece of an artifact of the task `task_id`: it continues the artifact (`append`), or replaces it."""

    artifact: Artifact
    append: bool
    task_id: str
    context_id: str


class Heard:
    """The reports about one task. `snapshot` is the task as far as it is known; None before the first report."""

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None

    def take(self, told: Snapshot | ArtifactPiece) -> Snapshot:
        """Takes the next report; returns the task with it."""
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
        """The beginning of the answer; empty if the artifacts so far may not belong to the answer."""
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
    """Returns the whole text of the answer; and its artifacts as blocks, if the answer is more than one text."""
    artifacts = there.artifacts or []
    exact = next((artifact for artifact in artifacts if artifact.artifact_id == ANSWER_ID), None)
    shown = [exact] if exact is not None else artifacts
    text = "\n\n".join(artifact.text for artifact in shown if artifact.text) or there.said
    plain = len(shown) == 1 and all(isinstance(part, TextPart) for part in shown[0].parts)
    blocks = [artifact for artifact in artifacts if artifact is not exact and artifact.parts]
    if plain and exact is None:
        return text, []
    if exact is None and any(not isinstance(part, TextPart) for artifact in blocks for part in artifact.parts):
        blocks = [one for artifact in blocks if (one := _without_text(artifact)).parts]  # their text is in the answer
    return text, [
        Artifact.block(number, type=artifact.type, name=artifact.name, parts=artifact.parts, metadata=artifact.metadata)
        for number, artifact in enumerate(blocks, 1)
    ]


def _without_text(artifact: Artifact) -> Artifact:
    return artifact.model_copy(update={"parts": [part for part in artifact.parts if not isinstance(part, TextPart)]})
