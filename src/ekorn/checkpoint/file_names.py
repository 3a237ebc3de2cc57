"""Names of directories and files in a job's checkpoint directory: Flink's layout, and unique names of state files.

    shared/      state that several checkpoints may refer to
    taskowned/   state that the driver never deletes
    chk-7/       files that belong to checkpoint 7 alone, and its `_metadata`
    owner/       which driver may write here (ownership.py)

The name of a state file starts with the checkpoint that it was written for. So a file left by a checkpoint that was
never completed can be told from one that is still being written, without a register of files.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

from ekorn.state.snapshots import SubtaskSnapshot

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
    "tombstone_path",
]

SHARED = "shared"
TASK_OWNED = "taskowned"
METADATA = "_metadata"

_DIRECTORY = re.compile(r"chk-(0|[1-9][0-9]*)")
_FILE = re.compile(r"(0|[1-9][0-9]*)-.+")
_ATTEMPT = re.compile(r"[0-9A-Za-z.]+")


def checkpoint_name(checkpoint_id: int) -> str:
    """Return the name of a checkpoint's directory."""
    return f"chk-{checkpoint_id}"


def tombstone_path(checkpoint_id: int, term: int) -> str:
    """Return the path of the file that says that the driver of a term is about to delete a checkpoint.

    >>> tombstone_path(7, 2)
    'chk-7/_discarded-000002'
    """
    return f"{checkpoint_name(checkpoint_id)}/_discarded-{term:06d}"


def checkpoint_id_of(directory: str) -> int | None:
    """Return the checkpoint that a directory belongs to; None for any other name.

    >>> checkpoint_id_of("chk-7"), checkpoint_id_of("shared")
    (7, None)
    """
    match = _DIRECTORY.fullmatch(directory)
    return None if match is None else int(match[1])


def created_for(path: str) -> int | None:
    """Return the checkpoint that a state file was first written for; None if its name does not say.

    >>> created_for("shared/7-v2-s0-a1.0-00ff"), created_for("chk-7/7-v2-s0-a1.0-00ff")
    (7, 7)
    """
    directory, _, name = path.rpartition("/")
    if (own := checkpoint_id_of(directory)) is not None:
        return own
    match = _FILE.fullmatch(name)
    return int(match[1]) if directory == SHARED and match is not None else None


def files_created_for(snapshot: SubtaskSnapshot, checkpoint_id: int) -> tuple[str, ...]:
    """Return the files that a snapshot created. Nothing else refers to them while the checkpoint is not complete."""
    paths = []
    for operator in snapshot.operators:
        paths += [f.path for f in operator.files() if f.path is not None and created_for(f.path) == checkpoint_id]
    return tuple(dict.fromkeys(paths))


def savepoint_name(job_id: str, random_part: str) -> str:
    """Return the name of a savepoint's directory, below the directory that the user names.

    >>> savepoint_name("ab" * 16, "0123456789ab")
    'savepoint-ababab-0123456789ab'
    """
    assert len(random_part) == 12
    return f"savepoint-{job_id[:6]}-{random_part}"


def savepoint_file(vertex: int, subtask: int, random_part: str) -> str:
    """Return the name of a state file in a savepoint's directory, beside the metadata, so that all moves together."""
    return f"v{vertex}-s{subtask}-{random_part}"


@dataclass(frozen=True)
class SnapshotNames:
    """Fresh names for one subtask's state files.

    Args:
        vertex: The vertex of the subtask.
        subtask: The index of the subtask.
        attempt: The driver's term and the job's attempt, `"<term>.<attempt>"`. A subtask of an earlier attempt that is
            still alive writes under other names, and two subtasks of one attempt differ in the random part.
        chance: The source of the random part.
    """

    vertex: int
    subtask: int
    attempt: str
    chance: random.Random = field(default_factory=random.SystemRandom, compare=False)

    def __post_init__(self) -> None:
        assert _ATTEMPT.fullmatch(self.attempt), f"attempt {self.attempt!r} becomes part of a file name"

    def exclusive(self, checkpoint_id: int) -> str:
        """Return the name of a file that only this checkpoint refers to."""
        return f"{checkpoint_name(checkpoint_id)}/{self._name(checkpoint_id)}"

    def shared(self, checkpoint_id: int) -> str:
        """Return the name of a file that later checkpoints may refer to as well."""
        return f"{SHARED}/{self._name(checkpoint_id)}"

    def _name(self, checkpoint_id: int) -> str:
        random_part = f"{self.chance.getrandbits(64):016x}"
        return f"{checkpoint_id}-v{self.vertex}-s{self.subtask}-a{self.attempt}-{random_part}"
