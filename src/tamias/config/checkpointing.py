"""The choices a program makes about its checkpoints."""

from __future__ import annotations

import enum


class CheckpointingMode(enum.Enum):
    """What a record counts for in the state after a failure.

    Checkpoints are taken between epochs, when every operator has seen the same input: both modes give
    exactly-once here.
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1


class ExternalizedCheckpointRetention(enum.Enum):
    """What becomes of the checkpoints when the job ends otherwise than by finishing."""

    DELETE_ON_CANCELLATION = 0
    """Kept when the job fails, deleted when it is cancelled."""
    RETAIN_ON_CANCELLATION = 1
    """Kept in both cases; to be deleted by hand."""
    NO_EXTERNALIZED_CHECKPOINTS = 2
    """Deleted in both cases."""
