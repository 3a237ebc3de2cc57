"""Names below a job's checkpoint directory: Flink's layout, and state files nobody else can have written.

    shared/      state that several checkpoints may refer to
    taskowned/   state that is never deleted from here
    chk-7/       what belongs to checkpoint 7 alone, and its `_metadata`
    owner/       who may write here (ownership.py)

A state file's name starts with the checkpoint it was written for, so that a file left over by a checkpoint that never
completed can be told from one still being written, without any register of files.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

from tamias.state.snapshots import SubtaskSnapshot

__all__ = [
    "METADATA",
    "SHARED",
    "TASK_OWNED",
    "SnapshotNames",
    "checkpoint_id_of",
    "checkpoint_name",
    "created_for",
    "files_created_for",
    "savepoint_file",
    "savepoint_name",
]

SHARED = "shared"
TASK_OWNED = "taskowned"
METADATA = "_metadata"

_DIRECTORY = re.compile(r"chk-(0|[1-9][0-9]*)")
_FILE = re.compile(r"(0|[1-9][0-9]*)-.+")
_ATTEMPT = re.compile(r"[0-9A-Za-z.]+")


def checkpoint_name(checkpoint_id: int) -> str:
    """The directory of one checkpoint."""
    return f"chk-{checkpoint_id}"


def checkpoint_id_of(directory: str) -> int | None:
    """The checkpoint a directory belongs to, or None for any other name.

    >>> checkpoint_id_of("chk-7"), checkpoint_id_of("shared")
    (7, None)
    """
    match = _DIRECTORY.fullmatch(directory)
    return None if match is None else int(match[1])


def created_for(path: str) -> int | None:
    """The checkpoint that a state file was first written for; None when its name does not say.

    >>> created_for("shared/7-v2-s0-a1.0-00ff"), created_for("chk-7/7-v2-s0-a1.0-00ff")
    (7, 7)
    """
    directory, _, name = path.rpartition("/")
    if (own := checkpoint_id_of(directory)) is not None:
        return own
    match = _FILE.fullmatch(name)
    return int(match[1]) if directory == SHARED and match is not None else None


def files_created_for(snapshot: SubtaskSnapshot, checkpoint_id: int) -> tuple[str, ...]:
    """The files a snapshot brought into being: those that nothing else can refer to while it is not complete."""
    paths = []
    for operator in snapshot.operators:
        files = list(operator.keyed.files) if operator.keyed is not None else []
        if operator.operator_state is not None:
            files.append(operator.operator_state)
        paths += [f.path for f in files if f.path is not None and created_for(f.path) == checkpoint_id]
    return tuple(dict.fromkeys(paths))


def savepoint_name(job_id: str, random_part: str) -> str:
    """The directory of a savepoint, below the one that the user names.

    >>> savepoint_name("ab" * 16, "0123456789ab")
    'savepoint-ababab-0123456789ab'
    """
    assert len(random_part) == 12
    return f"savepoint-{job_id[:6]}-{random_part}"


def savepoint_file(vertex: int, subtask: int, random_part: str) -> str:
    """A state file in a savepoint's directory: beside its metadata, so that all moves together."""
    return f"v{vertex}-s{subtask}-{random_part}"


@dataclass(frozen=True)
class SnapshotNames:
    """Fresh names for one subtask's state files.

    Args:
        vertex: Its vertex.
        subtask: Its index.
        attempt: The driver's term and the job's attempt, `"<term>.<attempt>"`: a subtask of an earlier attempt that is
            still alive writes under other names, and two of the same attempt differ in the random part.
        chance: Where the random part comes from.
    """

    vertex: int
    subtask: int
    attempt: str
    chance: random.Random = field(default_factory=random.SystemRandom, compare=False)

    def __post_init__(self) -> None:
        assert _ATTEMPT.fullmatch(self.attempt), f"attempt {self.attempt!r} becomes part of a file name"

    def exclusive(self, checkpoint_id: int) -> str:
        """A file that only this checkpoint will refer to."""
        return f"{checkpoint_name(checkpoint_id)}/{self._name(checkpoint_id)}"

    def shared(self, checkpoint_id: int) -> str:
        """A file that later checkpoints may refer to as well."""
        return f"{SHARED}/{self._name(checkpoint_id)}"

    def _name(self, checkpoint_id: int) -> str:
        random_part = f"{self.chance.getrandbits(64):016x}"
        return f"{checkpoint_id}-v{self.vertex}-s{self.subtask}-a{self.attempt}-{random_part}"
