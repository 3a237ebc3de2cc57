"""Requests of Spark's tasks to a slot, and the first byte of its answers: plain values, pickled.

Spark's Python workers import this. It is apart from the requests of the driver (`messages.py`), whose values need most
of the package: a worker would take a second to import it before its first row.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ekorn.graph.addresses import SubtaskId
from ekorn.operators.epoch import EpochOrder

# A slot answers RunEpoch with encoded blobs (`subtask/wire/frames.py`, first byte "B") and parts of its output for the
# driver, then with an acknowledgement or a failure.
OUTPUT = b"O"  # a pickled OutputPart
ACK = b"A"  # the pickled Ack; the last message of an epoch that succeeded
FAILED = b"F"  # a pickled exception; the last message of an epoch that failed
# It answers a task's request about a table with ACK and what was asked for, or with FAILED and the exception.


@dataclass(frozen=True, slots=True)
class RunEpoch:
    """From a Spark task: run a subtask's epoch. The blobs follow, one message each, then an empty message.

    With `repeatable`, Spark may run the task again or twice at a time (speculation, retries, lost executors). The
    subtask still runs once: the slot keeps its answer until the subtask's next epoch, and gives it to every task that
    asks. It does not matter then which of the tasks Spark counts.
    """

    subtask: SubtaskId
    attempt: int
    order: EpochOrder
    repeatable: bool = False


class Carries(Enum):
    """What a task carries between Spark's shuffle and a subtask that runs continuously."""

    INPUT = "input"
    OUTPUT = "output"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Attach:
    """From a task of a subtask that runs continuously: this connection carries blobs from now on.

    An empty message from the slot says that the subtask has finished: nothing follows, and nothing is read any more.
    """

    subtask: SubtaskId
    attempt: int
    carries: Carries
