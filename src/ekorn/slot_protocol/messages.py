"""Requests to a slot and its answers: plain values, pickled, after the connection has authenticated.

The requests of Spark's tasks are in `task_messages.py` and `table_messages.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import CachedFile
from ekorn.operators.epoch import SavepointOrder
from ekorn.operators.mark import MarkOrder
from ekorn.slot_protocol.diagnostics import SamplingPlan
from ekorn.slot_protocol.preload_plan import PreloadPlan
from ekorn.slot_protocol.slot_events import OperatorHint
from ekorn.slot_protocol.state_query import QueryableState
from ekorn.slot_protocol.table_messages import TableRequest
from ekorn.slot_protocol.task_messages import Attach, RunEpoch


@dataclass(frozen=True, slots=True)
class OrderEpoch:
    """From the driver: let the sources of this slot put the mark of an epoch into the stream."""

    attempt: int
    order: MarkOrder


@dataclass(frozen=True, slots=True)
class PauseSources:
    """From the driver: let the sources of this slot read nothing until the next order of an epoch."""

    attempt: int


@dataclass(frozen=True, slots=True)
class CutEpoch:
    """From the driver, over a connection of its own: let the sources of this slot end an epoch now, and those before.

    A job that runs in epochs is to stop, and what its sources have not read yet comes after the savepoint.
    """

    attempt: int
    number: int


@dataclass(frozen=True, slots=True)
class Deploy:
    """From the driver: open these subtasks. The deployment is pickled with the user's code in it."""

    deployment: bytes
    subtasks: list[SubtaskId]


@dataclass(frozen=True, slots=True)
class Preload:
    """From the driver, over a connection of its own: read state for subtasks that a rescale will open in this slot.

    `classes` are those of the main program, for a slot that has had no deployment yet.
    """

    classes: bytes
    plan: PreloadPlan


@dataclass(frozen=True, slots=True)
class KeepFile:
    """From the driver: the next part of an archive with a cached file, in a slot that cannot see the driver's disk."""

    number: int
    file: CachedFile
    part: bytes
    last: bool
    first: bool = False  # what an earlier attempt to send the file left in the slot is dropped


@dataclass(frozen=True, slots=True)
class BeginSavepoint:
    """From the driver, before the epoch that carries a savepoint: its directory, whose address may hold credentials."""

    checkpoint_id: int
    savepoint: SavepointOrder


@dataclass(frozen=True, slots=True)
class Completed:
    """From the driver: a checkpoint is completed."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class Aborted:
    """From the driver: a checkpoint was aborted. Subtasks that have failed are not told."""

    checkpoint_id: int
    failed: frozenset[SubtaskId] = frozenset()


@dataclass(frozen=True, slots=True)
class CloseSubtasks:
    """From the driver: the job has finished: close the subtasks and report their errors."""


@dataclass(frozen=True, slots=True)
class Discard:
    """From the driver: the attempt has failed or was cancelled: close the subtasks and ignore their errors.

    Without `only`, all subtasks; else some of them, while the others go on.
    """

    only: frozenset[SubtaskId] | None = None


@dataclass(frozen=True, slots=True)
class AnswerQueries:
    """From the driver: every further message on this connection is a query of state (`slot/query_connection.py`)."""


@dataclass(frozen=True, slots=True)
class Subscribe:
    """From the driver: report events, and activity as heartbeats, over this connection."""


@dataclass(frozen=True, slots=True)
class DumpThreads:
    """From the driver: answer with the stacks of all threads, whatever runs now."""


@dataclass(frozen=True, slots=True)
class SampleStacks:
    """From the driver, over a connection of its own: sample stacks for a while, and answer with those seen."""

    plan: SamplingPlan


@dataclass(frozen=True, slots=True)
class ReadLog:
    """From the driver, over a connection of its own: answer with the last lines of the slot's log."""


@dataclass(frozen=True, slots=True)
class ReadVitals:
    """From the driver, over a connection of its own: answer with what the process of the slot uses."""


@dataclass(frozen=True, slots=True)
class Exit:
    """From the driver: the job has ended: end the process."""


Request = (
    RunEpoch
    | Attach
    | OrderEpoch
    | PauseSources
    | CutEpoch
    | Deploy
    | Preload
    | KeepFile
    | BeginSavepoint
    | Completed
    | Aborted
    | CloseSubtasks
    | Discard
    | AnswerQueries
    | Subscribe
    | DumpThreads
    | SampleStacks
    | ReadLog
    | ReadVitals
    | Exit
    | TableRequest
)


@dataclass(frozen=True, slots=True)
class Done:
    """The answer to a request of the driver; the error if the request failed.

    The answer to `Deploy` has the queryable states that functions asked for when they were opened. The answer to a
    `Discard` of all subtasks has all hints of the job: as events, the last ones may arrive after its end.
    """

    error: BaseException | None = None
    queryable: tuple[QueryableState, ...] = ()
    hints: tuple[OperatorHint, ...] = ()
