"""The order and the acknowledgement of an epoch in a job that runs continuously: it ends at a mark in the stream.

Sources put the mark into the stream when they receive the order. A subtask acknowledges when it has the mark on all of
its channels, or when it lets the mark overtake the blobs before it (an unaligned checkpoint).
"""

from __future__ import annotations

from dataclasses import dataclass

from ekorn.graph.job_graph import VertexId
from ekorn.operators.epoch import Ack, Delays, SubtaskOrder

__all__ = ["MarkAck", "MarkOrder"]


@dataclass(frozen=True, slots=True)
class MarkOrder(SubtaskOrder):
    """The order of a mark.

    Attributes:
        overtakes_after_ms: How long after the order the mark overtakes blobs; None if it never does.
        pauses_sources: Between this mark and the next one the sources read nothing.
        suspends: Between this mark and the next one no source reads, no timer fires, and no answer of another system
            is processed.
        waiting: The source vertices that read nothing yet, because a bounded broadcast input is read first.
    """

    overtakes_after_ms: int | None = None
    pauses_sources: bool = False
    suspends: bool = False
    waiting: frozenset[VertexId] = frozenset()


@dataclass(slots=True)
class MarkAck(Ack):
    """The acknowledgement of a mark.

    Attributes:
        blocked_ms: How long the output was full since the mark before.
        aligned_ms: The time from the first mark of the epoch to the last.
        deferred_blobs: How many blobs waited in that time.
        kept_bytes: The size of the blobs that the subtask has taken from its input queue and not processed.
    """

    blocked_ms: float = 0.0
    aligned_ms: float = 0.0
    deferred_blobs: int = 0
    kept_bytes: int = 0

    def delays(self) -> Delays:
        return Delays(self.blocked_ms, self.aligned_ms, self.deferred_blobs)
