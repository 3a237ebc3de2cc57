"""Deploys attempts of a job into its slots, and makes ready what the next attempt needs.

Slots that cannot see the driver's disk get the cached files first: one archive for each file, in parts.
"""

from __future__ import annotations

import io
import logging
import tarfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Protocol

from ekorn.engine.protocol import Failure
from ekorn.engine.slots.slot_calls import SlotCalls, subtasks_by_slot
from ekorn.engine.slots.slot_handle import SlotHandle
from ekorn.errors import DeploymentError, EkornError, QueryableNameTwice
from ekorn.graph.job_graph import CachedFile, JobGraph
from ekorn.slot_protocol.cached_files import CONTENT, local_path
from ekorn.slot_protocol.deployment import Deployment
from ekorn.slot_protocol.deployment_codec import encode_classes, encode_deployment
from ekorn.slot_protocol.messages import Deploy, KeepFile, Preload, Request
from ekorn.slot_protocol.preload_plan import PreloadPlan, preload_plans
from ekorn.slot_protocol.state_query import QueryableState, check_names
from ekorn.state.snapshots import RestorePlan

__all__ = ["SlotDeployments", "send_files"]

_log = logging.getLogger(__name__)
PART_BYTES = 4 << 20
_PRELOAD_S = 600.0  # a slot that takes longer reads its state when it is deployed
_DROP_S = 10.0
_MOST_THREADS = 64  # slots that read state at the same time


class SlotDeployments:
    """The deployments of one job, one after another.

    Args:
        calls: The slots.

    Attributes:
        attempt: The number of the attempt that was deployed last; None before the first.
        queryable: The queryable states of that attempt.
    """

    def __init__(self, calls: SlotCalls) -> None:
        self._calls = calls
        self._pool = calls.pool
        self.attempt: int | None = None
        self.queryable: tuple[QueryableState, ...] = ()
        self._without_files: set[int] = set()  # slots that lack cached files; for slots that see no disk of the driver
        self._has_preloaded = False  # since the last `prepare`

    def prepare(self, graph: JobGraph) -> None:
        """Start the slots that a graph needs beyond those in use, and drop what was read in advance."""
        self._pool.prepare(graph.slot_count)
        if self._has_preloaded:
            self._has_preloaded = False
            _preload(dict.fromkeys(self._pool.upcoming(graph.slot_count), PreloadPlan()), _DROP_S)

    def preload(self, graph: JobGraph, plan: RestorePlan) -> None:
        """Let slots read state in advance; return when all have done so, or have failed to."""
        self._has_preloaded = True
        plans, slots = preload_plans(graph, plan), self._pool.upcoming(graph.slot_count)
        _preload({slot: plans[slot.number] for slot in slots if plans[slot.number].operators}, _PRELOAD_S)

    def deploy(self, deployment: Deployment) -> Failure | None:
        """Replace slots that are gone, then restore and open the subtasks in every slot."""
        # Also if the graph is the same: slots that were made ready for a rescale which has failed end.
        count, in_use = deployment.graph.slot_count, len(self._pool.slots)
        self._pool.resize(count)
        self._without_files.update(range(in_use, count))  # those that were made ready for a rescale run already
        self._without_files &= set(range(count))
        try:
            started = self._pool.ensure()
            deployment = replace(deployment, slot_hosts=_hosts(self._pool.slots))
            data = encode_deployment(deployment)
        except EkornError as error:
            return Failure(error)
        if not self._pool.shares_disk:
            self._without_files.update(started)
            failure = self._send_files(deployment)
            if failure is not None:
                return failure
        by_slot = subtasks_by_slot(deployment.graph, [slot.number for slot in self._pool.slots])
        self.attempt = deployment.attempt
        failure = self._calls.ask_all({number: Deploy(data, subtasks) for number, subtasks in by_slot.items()})
        return failure or self._check_queryable_names()

    def _send_files(self, deployment: Deployment) -> Failure | None:
        """Send the cached files to every slot that lacks them; return the failures of all slots as one."""
        failures: list[tuple[int, BaseException]] = []
        for number in sorted(self._without_files):
            error = send_files(self._pool.slots[number], deployment.graph.settings.cached_files)
            if error is None:
                self._without_files.discard(number)  # else the next deployment tries again
            else:
                failures.append((number, error))
        if len(failures) < 2:
            return next((Failure(error, number) for number, error in failures), None)
        said = "; ".join(f"slot {number}: {error}" for number, error in failures)
        return Failure(
            DeploymentError(f"{len(failures)} slots did not receive the cached files: {said}"), failures[0][0]
        )

    def _check_queryable_names(self) -> Failure | None:
        """Refuse two states of one name, which may be in different slots."""
        self.queryable = tuple(dict.fromkeys(state for slot in self._pool.slots for state in slot.queryable))
        try:
            check_names(self.queryable)
        except QueryableNameTwice as error:
            return Failure(error)
        return None


def _hosts(slots: Sequence[SlotHandle]) -> tuple[str, ...]:
    """Return the address of each slot's host; nothing if all are on one."""
    hosts = tuple(slot.address[0] if isinstance(slot.address, tuple) else "" for slot in slots)
    return hosts if len(set(hosts)) > 1 else ()


# --------------------------------------------------------------------------------------------- state read in advance


def _preload(plans: dict[SlotHandle, PreloadPlan], timeout_s: float) -> None:
    """Let slots read state by their plans, all at the same time. An empty plan drops what was read before."""
    if not plans:
        return
    classes = encode_classes()
    with ThreadPoolExecutor(min(len(plans), _MOST_THREADS), thread_name_prefix="ekorn-preload") as threads:
        asked = {slot: threads.submit(slot.preload, Preload(classes, plan), timeout_s) for slot, plan in plans.items()}
    for slot, answer in asked.items():
        error = answer.exception() or answer.result()
        if error is not None:
            _log.info("slot %d reads its state on deployment, not in advance: %s", slot.number, error)


# ------------------------------------------------------------------------------------------------------ cached files


class FileReceiver(Protocol):
    """The part of a slot's handle that sending needs."""

    def tell(self, request: Request) -> None:
        """Send a request."""

    def answer(self) -> BaseException | None:
        """Wait for its answer."""


class NotSent(Exception):
    """A slot could not take a part of a file; the cause is the slot's error."""


def send_files(slot: FileReceiver, files: tuple[CachedFile, ...], part_bytes: int = PART_BYTES) -> BaseException | None:
    """Send a slot the files of this machine one after another; return the first error, or None."""
    for number, file in enumerate(files):
        path = local_path(file.path)
        if path is None:
            continue  # the slot fetches it by itself
        parts = _Parts(slot, number, file, part_bytes)
        try:
            with tarfile.open(fileobj=parts, mode="w|", dereference=True) as archive:
                archive.add(path, arcname=CONTENT)
            parts.send(last=True)
        except NotSent as error:
            return error.__cause__
        except OSError as error:
            return DeploymentError(f"the cached file {file.name!r} cannot be read from {path!r}: {error}")
    return None


class _Parts(io.RawIOBase):
    """A file that sends what is written to it in parts, and waits until the slot has taken each."""

    def __init__(self, slot: FileReceiver, number: int, file: CachedFile, part_bytes: int) -> None:
        self._slot = slot
        self._number = number
        self._file = file
        self._part_bytes = part_bytes
        self._part = bytearray()
        self._first = True

    def write(self, data: Any) -> int:
        self._part += data
        if len(self._part) >= self._part_bytes:
            self.send(last=False)
        return len(data)

    def send(self, *, last: bool) -> None:
        """Send what was written since the last part."""
        self._slot.tell(KeepFile(self._number, self._file, bytes(self._part), last, self._first))
        self._part.clear()
        self._first = False
        error = self._slot.answer()
        if error is not None:
            raise NotSent from error
