"""The choices that a program makes with PyFlink's enumerations: modes, checkpoints and savepoints."""

from __future__ import annotations

from enum import Enum

__all__ = [
    "CheckpointingMode",
    "ExternalizedCheckpointRetention",
    "InputDependencyConstraint",
    "RuntimeExecutionMode",
    "SavepointFormatType",
]


class CheckpointingMode(Enum):
    """The guarantee after a failure.

    In epochs, checkpoints are taken when every operator has processed the same input, so state is exactly once in both
    modes. With AT_LEAST_ONCE, sinks that commit at checkpoints release their output at once.
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1


class ExternalizedCheckpointRetention(Enum):
    """Whether checkpoints are kept when the job fails or is cancelled."""

    DELETE_ON_CANCELLATION = 0
    """Checkpoints are kept when the job fails, and deleted when it is cancelled."""

    RETAIN_ON_CANCELLATION = 1
    """Checkpoints are kept in both cases. The user deletes them."""

    NO_EXTERNALIZED_CHECKPOINTS = 2
    """Checkpoints are deleted in both cases."""


class SavepointFormatType(Enum):
    """The format of a savepoint."""

    CANONICAL = "CANONICAL"
    """Every state backend reads it, so the job can be resumed with another backend."""

    NATIVE = "NATIVE"
    """The format of the job's state backend, written and restored faster. On the heap it is the canonical one."""


class RuntimeExecutionMode(Enum):
    """When results are emitted.

    STREAMING emits results as records arrive. BATCH emits only final results, key by key. AUTOMATIC chooses BATCH if
    every source is bounded.
    """

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2


class InputDependencyConstraint(Enum):
    """The inputs that must be ready before a vertex starts: one of them (ANY) or every one (ALL).

    The constraint has no effect, and exists for programs that set it: a level starts when all its inputs are complete.
    """

    ANY = 0
    ALL = 1
