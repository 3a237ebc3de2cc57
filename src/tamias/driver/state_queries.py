"""Answers queries of a running job's state: finds the slots of the keys, and asks them.

This is the seam of queryable state. The port for clients (`query_server.py`) calls it, and any other front can.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from tamias.checkpoint.checkpoint_directory import CheckpointDirectory
from tamias.checkpoint.metadata import CheckpointMetadata
from tamias.driver.job import Job
from tamias.driver.retained_checkpoints import RetainedCheckpoints
from tamias.engine.protocol import Engine
from tamias.errors import InvalidKeyError, QueryRefused, StateNotServed, UnknownQueryableState
from tamias.functions.job_status import JobStatus
from tamias.graph.addresses import SubtaskId
from tamias.keygroups import key_group, subtask_of
from tamias.slot.checkpoint_look_ups import CheckpointKeyGroup
from tamias.slot.state_look_ups import QueryableState, StateQuery
from tamias.state.snapshots import OperatorRestore
from tamias.types.type_information import TypeInformation

__all__ = ["Consistency", "FoundValues", "StateQueries"]

_KEYS_AT_ONCE = 1000  # that one slot looks up while its user code waits


Consistency = Literal["live", "checkpoint"]


class _Target(NamedTuple):
    """Where a key is: in a subtask, and with a checkpoint in some of its files."""

    subtask: SubtaskId
    checkpoint: CheckpointKeyGroup | None


class FoundValues(NamedTuple):
    """The answer to a query: the kind of the state, and the pickled value of each key, None for a key without one."""

    kind: str
    values: list[bytes | None]


class StateQueries:
    """The queryable states of one job. Thread-safe."""

    def __init__(self, job: Job, engine: Engine, retained: RetainedCheckpoints, directory: CheckpointDirectory) -> None:
        self._job = job
        self._engine = engine
        self._retained = retained
        self._directory = directory

    def look_up(self, name: str, keys: Sequence[Any], consistency: Consistency = "live") -> FoundValues:
        """Return the values of some keys.

        Args:
            name: The queryable name of the state.
            keys: The keys, as the program gives them.
            consistency: `live` for the newest values, which need not be of one instant; `checkpoint` for those of the
                last completed checkpoint, which are, and which no failure takes back.

        Raises:
            UnknownQueryableState: The job has no state of this name.
            StateNotServed: The job does not run now, or a slot does not answer in time.
            QueryRefused: A key is not one that a stream can have.
        """
        attempt = self._running_attempt(name)
        state = self._state(name)
        values: list[bytes | None] = [None] * len(keys)
        timeout_s = self._job.settings.queryable.timeout_ms / 1000
        checkpoint = self._newest_checkpoint(name) if consistency == "checkpoint" else None
        for target, places in self._by_target(state, keys, checkpoint):
            wanted = [keys[place] for place in places]
            query = StateQuery(target.subtask, attempt, name, wanted, timeout_s, target.checkpoint)
            for place, value in zip(places, self._engine.look_up(query), strict=True):
                values[place] = value
        return FoundValues(state.kind, values)

    def key_type(self, name: str) -> TypeInformation | None:
        """Return the declared type of the keys of a state.

        Raises:
            UnknownQueryableState: The job has no state of this name.
            StateNotServed: The job does not run now.
        """
        self._running_attempt(name)  # before it runs, it has no states yet
        state = self._state(name)
        operators = self._job.graph.vertices[state.vertex].operators
        key = next(operator.key for operator in operators if operator.id == state.operator_id)
        return None if key is None else key.type_info

    def _running_attempt(self, name: str) -> int:
        progress = self._job.handle.progress()
        if progress.status is not JobStatus.RUNNING:
            raise StateNotServed(name, f"job {self._job.name!r} is {progress.status.name}")
        return progress.attempt

    def _state(self, name: str) -> QueryableState:
        states = self._engine.queryable_states()
        found = next((state for state in states if state.name == name), None)
        if found is None:
            known = ", ".join(sorted(repr(state.name) for state in states)) or "none"
            raise UnknownQueryableState(name, known)
        return found

    def _newest_checkpoint(self, name: str) -> CheckpointMetadata:
        newest = self._retained.newest
        if newest is None:
            raise StateNotServed(name, f"job {self._job.name!r} has not completed a checkpoint yet")
        return newest

    def _by_target(
        self, state: QueryableState, keys: Sequence[Any], checkpoint: CheckpointMetadata | None
    ) -> Iterator[tuple[_Target, list[int]]]:
        """Yield where keys are, with their places in the query, a bounded number at a time."""
        vertex = self._job.graph.vertices[state.vertex]
        places: dict[_Target, list[int]] = {}
        for place, key in enumerate(keys):
            try:
                group = key_group(key, vertex.max_parallelism)
            except (InvalidKeyError, TypeError) as error:
                raise QueryRefused(f"{key!r} cannot be a key: {error}") from None
            subtask = SubtaskId(vertex.id, subtask_of(group, vertex.max_parallelism, vertex.parallelism))
            part = None if checkpoint is None else self._part(checkpoint, state.operator_id, group)
            places.setdefault(_Target(subtask, part), []).append(place)
        for target, mine in places.items():
            for start in range(0, len(mine), _KEYS_AT_ONCE):
                yield target, mine[start : start + _KEYS_AT_ONCE]

    def _part(self, checkpoint: CheckpointMetadata, operator_id: str, group: int) -> CheckpointKeyGroup:
        """Return the files of a checkpoint that have the state of a key group."""
        stored = checkpoint.operator(operator_id)
        assert stored is not None, "the job wrote the checkpoint itself, or started from it"
        keyed = [part.keyed for part in stored.subtasks if part is not None and part.keyed is not None]
        restore = OperatorRestore(
            operator_id=operator_id,
            keyed=tuple(part for part in keyed if part.key_group_first <= group <= part.key_group_last),
            states=stored.states,
            max_parallelism=stored.max_parallelism,
            label=stored.label(),
        )
        return CheckpointKeyGroup(checkpoint.checkpoint_id, self._directory.files.address, restore, group)
