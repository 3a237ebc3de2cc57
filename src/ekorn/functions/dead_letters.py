"""Records that a function could not process: what happens to them, and the form in which they leave the job."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from ekorn.functions.output_tag import OutputTag
from ekorn.types.published import publish

__all__ = ["DEAD_LETTERS", "DeadLetter", "OnRecordError"]


class OnRecordError(Enum):
    """What an operator does with a record for which its function raises."""

    FAIL = "fail"
    SKIP = "skip"
    DEAD_LETTER = "dead-letter"


@dataclass(frozen=True)
class DeadLetter:
    """A record that an operator could not process, with the reason.

    Attributes:
        record: The record. For an error in a key selector or a partitioner, the result that was to be sent.
        operator: The name of the operator.
        uid: The uid of the operator, if the program set one.
        subtask: The index of the subtask.
        error: The exception as text: its type and its message.
        traceback: The traceback of the user's function, as text.
        timestamp: The event time of the record, if it has one.
        failed_at: The processing time of the failure, in milliseconds since the epoch.
    """

    record: Any
    operator: str
    uid: str | None
    subtask: int
    error: str
    traceback: str
    timestamp: int | None
    failed_at: int


DEAD_LETTERS = OutputTag("ekorn.dead-letters")
"""The side output of dead letters. `get_dead_letters()` of a stream or an environment reads it."""

publish("ekorn.datastream", DeadLetter, OnRecordError)
