"""Routes queries of a running job's state to the slots that hold the keys.

`StateQueries` implements `StateReader`. The port for clients (`query_server.py`) and the REST API call it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from ekorn.checkpoint.checkpoint_directory import CheckpointDirectory
from ekorn.checkpoint.metadata import CheckpointMetadata
from ekorn.driver.checkpoints.retained_checkpoints import RetainedCheckpoints
from ekorn.driver.loop.job import Job
from ekorn.driver.queries.answer_room import ROOM, AnswerRoom
from ekorn.driver.queries.state_reader import Consistency, FoundValues
from ekorn.engine.protocol import Engine
from ekorn.errors import InvalidKeyError, QueryRefused, StateNotServed, UnknownQueryableState, preview
from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import Vertex
from ekorn.keygroups import key_group, key_groups_of, subtask_of
from ekorn.slot_protocol.state_query import RESCALED, CheckpointKeyGroup, QueryableState, StateQuery
from ekorn.state.snapshots import OperatorRestore
from ekorn.state.state_queries import MOST_ANSWER_BYTES, too_large
from ekorn.types.type_information import TypeInformation

__all__ = ["Consistency", "FoundValues", "PendingValues", "StateQueries"]

_KEYS_AT_ONCE = 1000  # the most keys that a slot looks up in one pause of its user code


class _Target(NamedTuple):
    """The subtask that answers for a key, and the files to read if the query is about a checkpoint."""

    subtask: SubtaskId
    checkpoint: CheckpointKeyGroup | None


class PendingValues:
    """The values of a query in flight, which slots are looking up.

    Args:
        kind: The kind of the state.
        size: How many keys were asked for.
        parts: Of each request to a slot: the positions of its keys in the query, and the values.
        most_bytes: How large the values may be together.
        name: The queryable name of the state, for error messages.
        room: Counts the values that have arrived until `result` returns them.
    """

    def __init__(
        self,
        kind: str,
        size: int,
        parts: list[tuple[list[int], Future[list[bytes | None]]]],
        most_bytes: int = MOST_ANSWER_BYTES,
        *,
        name: str = "",
        room: AnswerRoom = ROOM,
    ) -> None:
        self._kind = kind
        self._size = size
        self._parts = parts
        self._most_bytes = most_bytes
        self._name = name
        self._room = room
        self._lock = threading.Lock()
        self._bytes = 0  # of the values that have arrived
        self._in_room = 0  # of those that are kept
        self._lacks_room = False
        self._is_over = False  # `result` has returned or raised
        for _, found in parts:
            found.add_done_callback(self._arrived)

    def _arrived(self, found: Future[list[bytes | None]]) -> None:
        """Count the bytes of values; let go of them if they are too many, while other slots still answer."""
        if found.exception() is None:
            size = sum(map(len, filter(None, found.result())))
            with self._lock:
                self._bytes += size
                if self._is_over:
                    return
                if self._bytes <= self._most_bytes and not self._lacks_room and self._room.take(size):
                    self._in_room += size
                    return
                self._lacks_room |= self._bytes <= self._most_bytes
                self._leave_room()
                for _, part in self._parts:
                    if part.done() and part.exception() is None:
                        part.result().clear()

    def _leave_room(self) -> None:
        self._room.give_back(self._in_room)
        self._in_room = 0

    @property
    def is_done(self) -> bool:
        """Whether all slots have answered."""
        return all(found.done() for _, found in self._parts)

    def add_done_callback(self, call: Callable[[], None]) -> None:
        """Add a function that is called, on any thread, each time a slot answers; called now if no slot was asked."""
        for _, found in self._parts:
            found.add_done_callback(lambda _: call())
        if not self._parts:
            call()

    def result(self) -> FoundValues:
        """Wait for the slots and return the values.

        Raises:
            StateNotServed: The job does not run any more, a slot does not answer in time, or too many answers wait.
            QueryRefused: The values are larger than an answer may be.
        """
        values: list[bytes | None] = [None] * self._size
        try:
            for _, found in self._parts:
                found.result()
            with self._lock:  # an answer that has arrived but is not counted yet is not larger than its slot lets it be
                if self._bytes > self._most_bytes:
                    raise QueryRefused(too_large(self._size, self._bytes))
                if self._lacks_room:
                    why = f"answers of {self._room.most_bytes} bytes wait in the driver until clients take them"
                    raise StateNotServed(self._name, why)
                for positions, found in self._parts:
                    for position, value in zip(positions, found.result(), strict=True):
                        values[position] = value
        finally:
            with self._lock:
                self._is_over = True
                self._leave_room()
        return FoundValues(self._kind, values)


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
            consistency: `live` for the newest values, which may be from different instants; `checkpoint` for the
                values in the last completed checkpoint, which are consistent and which no failure takes back.

        Raises:
            UnknownQueryableState: The job has no state of this name.
            StateNotServed: The job does not run now, or a slot does not answer in time.
            QueryRefused: A key is not one that a stream can have.
        """
        return self.begin(name, keys, consistency).result()

    def begin(self, name: str, keys: Sequence[Any], consistency: Consistency = "live") -> PendingValues:
        """Ask the slots for the values of some keys, as `look_up` does, without waiting for the answers.

        Raises:
            UnknownQueryableState: The job has no state of this name.
            StateNotServed: The job does not run now.
            QueryRefused: A key is not one that a stream can have.
        """
        attempt = self._running_attempt(name)
        state = self._state(name)
        timeout_s = self._job.settings.queryable.timeout_ms / 1000
        checkpoint = self._newest_checkpoint(name) if consistency == "checkpoint" else None
        parts: list[tuple[list[int], Future[list[bytes | None]]]] = []
        for target, positions in self._by_target(state, keys, checkpoint):
            wanted = [keys[position] for position in positions]
            query = StateQuery(target.subtask, attempt, name, wanted, timeout_s, target.checkpoint)
            parts.append((positions, self._engine.look_up(query)))
        return PendingValues(state.kind, len(keys), parts, name=name)

    def states(self) -> tuple[QueryableState, ...]:
        """Return the queryable states of the job; none unless it runs."""
        runs = self._job.view.status() is JobStatus.RUNNING
        return self._engine.queryable_states() if runs else ()

    def key_type(self, name: str) -> TypeInformation | None:
        """Return the declared type of the keys of a state.

        Raises:
            UnknownQueryableState: The job has no state of this name.
            StateNotServed: The job does not run now.
        """
        self._running_attempt(name)  # raises: a job that does not run has no states
        state = self._state(name)
        operators = self._vertex(state).operators
        key = next(operator.key for operator in operators if operator.id == state.operator_id)
        return None if key is None else key.type_info

    def _running_attempt(self, name: str) -> int:
        progress = self._job.view.progress()
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

    def _vertex(self, state: QueryableState) -> Vertex:
        """Return the vertex of a state.

        The engine names the states of the graph that it has deployed. While a job is rescaled, the graph of the job
        may be another one, in which the vertex has another number or is gone.

        Raises:
            StateNotServed: The job is being rescaled.
        """
        vertices = self._job.graph.vertices
        vertex = vertices[state.vertex] if state.vertex < len(vertices) else None
        if vertex is None or all(operator.id != state.operator_id for operator in vertex.operators):
            raise StateNotServed(state.name, RESCALED)
        return vertex

    def _newest_checkpoint(self, name: str) -> CheckpointMetadata:
        newest = self._retained.newest
        if newest is None:
            raise StateNotServed(name, f"job {self._job.name!r} has not completed a checkpoint yet")
        return newest

    def _by_target(
        self, state: QueryableState, keys: Sequence[Any], checkpoint: CheckpointMetadata | None
    ) -> Iterator[tuple[_Target, list[int]]]:
        """Yield targets with the positions of their keys in the query, and a target with many keys several times."""
        vertex = self._vertex(state)
        total, parallelism = vertex.max_parallelism, vertex.parallelism
        groups = _key_groups(keys, total)
        positions: dict[int, list[int]] = {}  # by subtask for live values, by key group for those of a checkpoint
        for position, group in enumerate(groups):
            at = subtask_of(group, total, parallelism) if checkpoint is None else group
            positions.setdefault(at, []).append(position)
        for at, mine in positions.items():
            target = _Target(SubtaskId(vertex.id, at), None)
            if checkpoint is not None:
                subtask = SubtaskId(vertex.id, subtask_of(at, total, parallelism))
                target = _Target(subtask, self._part(checkpoint, state, at))
            for start in range(0, len(mine), _KEYS_AT_ONCE):
                yield target, mine[start : start + _KEYS_AT_ONCE]

    def _part(self, checkpoint: CheckpointMetadata, state: QueryableState, group: int) -> CheckpointKeyGroup:
        """Return the files of a checkpoint that contain the state of a key group."""
        stored = checkpoint.operator(state.operator_id)
        if stored is None:  # an earlier driver took the checkpoint, and the program has changed since
            why = (
                f"checkpoint {checkpoint.checkpoint_id} is older than its operator; the next checkpoint will contain it"
            )
            raise StateNotServed(state.name, why)
        keyed = [part.keyed for part in stored.subtasks if part is not None and part.keyed is not None]
        restore = OperatorRestore(
            operator_id=state.operator_id,
            keyed=tuple(part for part in keyed if part.key_group_first <= group <= part.key_group_last),
            states=stored.states,
            max_parallelism=stored.max_parallelism,
            label=stored.label(),
        )
        return CheckpointKeyGroup(checkpoint.checkpoint_id, self._directory.files.address, restore, group)


def _key_groups(keys: Sequence[Any], max_parallelism: int) -> list[int]:
    """Return the key group of each key.

    Raises:
        QueryRefused: A key is not one that a stream can have.
    """
    if set(map(type, keys)) in ({int}, {str}):
        return key_groups_of(list(keys), max_parallelism)
    groups: list[int] = []
    for key in keys:
        try:
            groups.append(key_group(key, max_parallelism))
        except (InvalidKeyError, TypeError) as error:
            raise QueryRefused(f"{preview(key)} cannot be a key: {error}") from None
    return groups
