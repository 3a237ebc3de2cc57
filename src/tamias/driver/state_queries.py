"""Answers queries of a running job's state: finds the slots of the keys, and asks them.

This is the seam of queryable state. The port for clients (`query_server.py`) calls it, and any other front can.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tamias.driver.job import Job
from tamias.engine.protocol import Engine
from tamias.errors import InvalidKeyError, QueryRefused, StateNotServed, UnknownQueryableState
from tamias.functions.job_status import JobStatus
from tamias.graph.addresses import SubtaskId
from tamias.keygroups import key_group, subtask_of
from tamias.slot.state_look_ups import QueryableState, StateQuery
from tamias.types.type_information import TypeInformation

__all__ = ["Found", "StateQueries"]

_KEYS_AT_ONCE = 1000  # that one slot looks up while its user code waits


class Found(NamedTuple):
    """The answer to a query: the kind of the state, and the pickled value of each key, None for a key without one."""

    kind: str
    values: list[bytes | None]


class StateQueries:
    """The queryable states of one job. Thread-safe."""

    def __init__(self, job: Job, engine: Engine) -> None:
        self._job = job
        self._engine = engine

    def look_up(self, name: str, keys: Sequence[Any]) -> Found:
        """Return the live values of some keys. The values of one call need not be of one instant.

        Raises:
            UnknownQueryableState: The job has no state of this name.
            StateNotServed: The job does not run now, or a slot does not answer in time.
            QueryRefused: A key is not one that a stream can have.
        """
        attempt = self._running_attempt(name)
        state = self._state(name)
        values: list[bytes | None] = [None] * len(keys)
        timeout_s = self._job.settings.queryable.timeout_ms / 1000
        for subtask, places in self._by_subtask(state, keys):
            query = StateQuery(subtask, attempt, name, [keys[place] for place in places], timeout_s)
            for place, value in zip(places, self._engine.look_up(query), strict=True):
                values[place] = value
        return Found(state.kind, values)

    def key_type(self, name: str) -> TypeInformation | None:
        """Return the declared type of the keys of a state.

        Raises:
            UnknownQueryableState: The job has no state of this name.
        """
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

    def _by_subtask(self, state: QueryableState, keys: Sequence[Any]) -> Iterator[tuple[SubtaskId, list[int]]]:
        """Yield subtasks with the places of their keys in the query, a bounded number at a time."""
        vertex = self._job.graph.vertices[state.vertex]
        places: dict[SubtaskId, list[int]] = {}
        for place, key in enumerate(keys):
            try:
                group = key_group(key, vertex.max_parallelism)
            except (InvalidKeyError, TypeError) as error:
                raise QueryRefused(f"{key!r} cannot be a key: {error}") from None
            subtask = SubtaskId(vertex.id, subtask_of(group, vertex.max_parallelism, vertex.parallelism))
            places.setdefault(subtask, []).append(place)
        for subtask, mine in places.items():
            for start in range(0, len(mine), _KEYS_AT_ONCE):
                yield subtask, mine[start : start + _KEYS_AT_ONCE]
