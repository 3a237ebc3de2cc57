"""`CheckpointingMode` and `ExternalizedCheckpointRetention`: choices of a program about its checkpoints."""

from __future__ import annotations

import enum


class CheckpointingMode(enum.Enum):
    """The guarantee for the state after a failure.

    Checkpoints are taken between epochs, when every operator has processed the same input, so state is exactly once
    in both modes. With AT_LEAST_ONCE, sinks that commit at checkpoints release their output at once.
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1


class ExternalizedCheckpointRetention(enum.Enum):
    """Whether checkpoints are kept when the job fails or is cancelled."""

    DELETE_ON_CANCELLATION = 0
    """Kept when the job fails, deleted when it is cancelled."""
    RETAIN_ON_CANCELLATION = 1
    """Kept in both cases; to be deleted by hand."""
    NO_EXTERNALIZED_CHECKPOINTS = 2
    """Deleted in both cases."""
