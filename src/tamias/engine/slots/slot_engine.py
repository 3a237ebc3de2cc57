"""What every engine whose slots are processes has in common: all but how an epoch's blobs move between them."""

from __future__ import annotations

import contextlib
import queue
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Protocol

from tamias.engine.protocol import EpochResult, Failure
from tamias.engine.slots.file_sending import send_files
from tamias.engine.slots.pool import Slot
from tamias.errors import SlotLostError, TamiasError, UserFunctionError
from tamias.graph.job_graph import JobGraph
from tamias.graph.regions import in_regions_of
from tamias.operators.epoch import Ack, EpochOrder
from tamias.slot.caller import Failed
from tamias.slot.deployment import Deployment, SlotEvent
from tamias.slot.deployment_pickle import dump_deployment
from tamias.slot.messages import Aborted, CloseSubtasks, Completed, Deploy, Discard, Request


class Slots(Protocol):
    """The slots of a job, wherever they run."""

    secret: bytes
    slots: list[Slot]
    events: queue.SimpleQueue[SlotEvent | None]
    on_lost: Callable[[int], None]  # called from any thread, for a slot that is given up
    shares_disk: bool  # whether the slots see the driver's files

    def ensure(self) -> list[int]:
        """Have every slot running and connected; the numbers of those that were (re)started."""

    def shutdown(self) -> None:
        """End them all."""


class SlotEngine(ABC):
    """Hosts a job in slot processes. How an epoch is run is left to the subclass."""

    def __init__(self, graph: JobGraph, pool: Slots) -> None:
        self._graph = graph
        self._pool = pool
        pool.on_lost = self._slot_lost
        self._deployment: Deployment | None = None
        self._held: list[SlotEvent] = []

    @property
    def in_process(self) -> bool:
        return False

    @property
    def slot_pids(self) -> tuple[int, ...]:
        return tuple(slot.process.pid for slot in self._pool.slots)

    def keep_log(self) -> str | None:
        return None

    @abstractmethod
    def run_epoch(self, order: EpochOrder) -> EpochResult:
        """Push one epoch through all levels."""

    @abstractmethod
    def cancel_epoch(self) -> None:
        """Make a running `run_epoch` return soon. From any thread."""

    @abstractmethod
    def _slot_lost(self, number: int) -> None:
        """A slot does not answer and was given up: make a running `run_epoch` return soon. From any thread."""

    # ------------------------------------------------------------------------------------------------ requests

    def deploy(self, deployment: Deployment) -> Failure | None:
        """Start an attempt in all slots, new ones where one is gone."""
        self._deployment = deployment
        try:
            started = self._pool.ensure()
            data = dump_deployment(deployment)
        except TamiasError as error:
            return Failure(error)
        for number in started if not self._pool.shares_disk else ():
            failed = send_files(self._pool.slots[number], deployment.graph.settings.cached_files)
            if failed is not None:
                return Failure(failed, number)
        by_slot: dict[int, list[tuple[int, int]]] = {slot.number: [] for slot in self._pool.slots}
        for vertex in deployment.graph.vertices:
            for index in range(vertex.parallelism):
                by_slot[deployment.graph.slot_of(vertex, index)].append((vertex.id, index))
        return self._ask_all({number: Deploy(data, subtasks) for number, subtasks in by_slot.items()})

    def _ask_all(self, requests: dict[int, Request], timeout_s: float | None = None) -> Failure | None:
        """Put a request to every slot at once and wait for all; the first failure."""
        for number, request in requests.items():
            self._pool.slots[number].tell(request)
        failures = [(number, self._pool.slots[number].answer(timeout_s)) for number in requests]
        # The user's own error says more than the loss of a slot that followed from it.
        failures.sort(key=lambda f: isinstance(f[1], SlotLostError))
        return next((Failure(error, number) for number, error in failures if error is not None), None)

    def _ask_each(self, request: Request, timeout_s: float | None = None) -> Failure | None:
        return self._ask_all({slot.number: request for slot in self._pool.slots}, timeout_s)

    def notify_completed(self, checkpoint_id: int) -> Failure | None:
        """Tell all subtasks that a checkpoint is complete."""
        return self._ask_each(Completed(checkpoint_id))

    def notify_aborted(self, checkpoint_id: int) -> Failure | None:
        """Tell all subtasks that a checkpoint was given up."""
        return self._ask_each(Aborted(checkpoint_id))

    def close_subtasks(self) -> Failure | None:
        """Close all subtasks."""
        return self._ask_each(CloseSubtasks())

    def shutdown(self) -> None:
        """End the slots."""
        self._ask_each(Discard(), timeout_s=3.0)  # user code that hangs is left to its end with the process
        self._pool.shutdown()

    # ------------------------------------------------------------------------------------------------ outcomes

    def _result(self, found: list[Ack | Failed]) -> EpochResult:
        """What an epoch came to, given the answers of its subtasks."""
        acks = sorted((o for o in found if isinstance(o, Ack)), key=lambda a: (a.vertex, a.subtask))
        errors = {(o.vertex, o.subtask): o.error for o in found if isinstance(o, Failed)}
        if not errors:
            return EpochResult(acks)
        first = min(errors.values(), key=lambda error: not isinstance(error, UserFunctionError))
        failed = frozenset(errors) | self._lost_subtasks(errors.values())
        hit = in_regions_of(self._graph, failed)
        rest = [ack for ack in acks if (ack.vertex, ack.subtask) not in hit]
        return EpochResult(rest, Failure(self._with_cause(first, errors), subtasks=failed))

    def _lost_subtasks(self, errors: Iterable[BaseException]) -> frozenset[tuple[int, int]]:
        """A slot that is lost takes all its subtasks with it, also those that had answered."""
        lost = {slot.number for slot in self._pool.slots if not slot.process.alive}
        lost |= {error.slot for error in errors if isinstance(error, SlotLostError)}
        everyone = ((v, index) for v in self._graph.vertices for index in range(v.parallelism))
        return frozenset((int(v.id), index) for v, index in everyone if self._graph.slot_of(v, index) in lost)

    def _with_cause(self, error: BaseException, errors: dict[tuple[int, int], BaseException]) -> BaseException:
        """A broken connection to a slot says little: find out how the slot ended, and what it was doing.

        Its process may still be ending when the connection is gone already; that is waited for, so that the attempt
        that follows does not take it for alive.
        """
        if not isinstance(error, SlotLostError):
            return error
        ended = self._pool.slots[error.slot].process.how_it_ended()
        if ended is None:
            return self._lost_slot() or error
        left = [of for of, found in errors.items() if isinstance(found, SlotLostError) and found.slot == error.slot]
        ran = ", ".join(f"{self._graph.vertices[vertex].name!r} (subtask {index})" for vertex, index in sorted(left))
        return SlotLostError(error.slot, f"{ended} while it ran {ran}")

    def _lost_slot(self) -> SlotLostError | None:
        for slot in self._pool.slots:
            if not slot.process.alive:
                return SlotLostError(slot.number, slot.process.how_it_ended() or "its process ended")
        return None

    def lost(self) -> Failure | None:
        """A slot that is gone while no epoch runs."""
        error = self._lost_slot()
        return None if error is None else Failure(error, error.slot)

    # -------------------------------------------------------------------------------------------------- events

    def events(self) -> list[SlotEvent]:
        """What the slots reported since the last call."""
        found, self._held = self._held, []
        with contextlib.suppress(queue.Empty):
            while True:
                event = self._pool.events.get_nowait()
                if event is not None:
                    found.append(event)
        return found

    def wait(self, timeout_s: float) -> None:
        """Sleep until a slot reports something, `wake` is called, or the time is up."""
        with contextlib.suppress(queue.Empty):
            event = self._pool.events.get(timeout=max(timeout_s, 0.0))
            if event is not None:
                self._held.append(event)

    def wake(self) -> None:
        """End a `wait`. From any thread."""
        self._pool.events.put(None)
