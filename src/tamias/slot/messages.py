"""What is said to a slot and what it answers. Pickled plain values, after the connection has authenticated."""

from __future__ import annotations

from dataclasses import dataclass

from tamias.graph.job_graph import CachedFile
from tamias.operators.epoch import EpochOrder

# What a slot answers to RunEpoch: encoded blobs (`wire/frames.py`, first byte "B"), then one of these.
ACK = b"A"  # the pickled Ack; the last message of an epoch that went well
FAILED = b"F"  # a pickled exception; the last message of one that did not


@dataclass(frozen=True, slots=True)
class RunEpoch:
    """From a Spark task: run a subtask's epoch. The blobs follow, one message each, then an empty message."""

    vertex: int
    subtask: int
    attempt: int
    order: EpochOrder


@dataclass(frozen=True, slots=True)
class Deploy:
    """From the driver: open these subtasks. The deployment is pickled with the user's code in it."""

    deployment: bytes
    subtasks: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class KeepFile:
    """From the driver: the next part of an archive with a cached file, in a slot that cannot see the driver's disk."""

    number: int
    file: CachedFile
    part: bytes
    last: bool


@dataclass(frozen=True, slots=True)
class Completed:
    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class Aborted:
    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class CloseSubtasks:
    """From the driver: the job has ended well."""


@dataclass(frozen=True, slots=True)
class Discard:
    """From the driver: the attempt has failed or was cancelled."""


@dataclass(frozen=True, slots=True)
class Subscribe:
    """From the driver: send what happens in the background over this connection."""


@dataclass(frozen=True, slots=True)
class Exit:
    """From the driver: the job is over."""


Request = RunEpoch | Deploy | KeepFile | Completed | Aborted | CloseSubtasks | Discard | Subscribe | Exit


@dataclass(frozen=True, slots=True)
class Done:
    """The answer to a request of the driver's."""

    error: BaseException | None = None
