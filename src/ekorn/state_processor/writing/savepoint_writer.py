"""`SavepointWriter`: writes a new savepoint from streams, and from the operators of an existing one."""

from __future__ import annotations

import os
import secrets
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any, Self, overload

from ekorn.batch.program.execution_environment import ExecutionEnvironment
from ekorn.checkpoint.metadata import OperatorMetadata
from ekorn.checkpoint.signing import SigningKey, read_signing_key
from ekorn.config.state_backend import StateBackend
from ekorn.errors import CheckpointError, InvalidProgramError, StateError
from ekorn.graph.specs import SavepointFilesSpec
from ekorn.graph.stream_graph import checked_max_parallelism
from ekorn.program.checks.argument_checks import check_instance
from ekorn.program.environment.stream_execution_environment import StreamExecutionEnvironment
from ekorn.program.streams.bootstrapped_state import run_bootstraps
from ekorn.state.snapshots import SubtaskSnapshot
from ekorn.state_processor.operator_identifier import OperatorIdentifier, identified
from ekorn.state_processor.reading.savepoint_reader import Environment
from ekorn.state_processor.reading.stored_savepoint import StoredOperator, StoredSavepoint, open_savepoint
from ekorn.state_processor.writing.new_savepoint import NewSavepoint, new_directory, operator_of
from ekorn.state_processor.writing.operator_transformation import StateBootstrapTransformation
from ekorn.storage.file_store import FileStore

__all__ = ["SavepointWriter"]

JOB_NAME = "write savepoint"


@dataclass
class _Planned:
    """The operators of the new savepoint, by id."""

    kept: dict[str, StoredOperator] = field(default_factory=dict)
    bootstrapped: dict[str, tuple[OperatorIdentifier, StateBootstrapTransformation]] = field(default_factory=dict)

    def __contains__(self, operator_id: str) -> bool:
        return operator_id in self.kept or operator_id in self.bootstrapped


class SavepointWriter:
    """Writes a new savepoint. It never changes the one that it starts from, and does not depend on its files.

    Example:
        writer = SavepointWriter.new_savepoint(env, max_parallelism=128)
        writer.with_operator("balances", transformation).write("/savepoints/first")
    """

    def __init__(
        self,
        env: StreamExecutionEnvironment,
        max_parallelism: int | None,
        existing: StoredSavepoint | None,
        key: SigningKey | None,
    ) -> None:
        self._env = env
        self._max_parallelism = max_parallelism
        self._existing = existing
        self._key = key
        self._planned = _Planned()
        if existing is not None:
            self._planned.kept = {each.metadata.operator_id: each for each in existing.operators()}

    @overload
    @staticmethod
    def new_savepoint(
        env: Environment, max_parallelism: int, *, state_backend: StateBackend | None = None
    ) -> SavepointWriter: ...

    @overload
    @staticmethod
    def new_savepoint(
        env: Environment, state_backend: StateBackend | None, max_parallelism: int, /
    ) -> SavepointWriter: ...

    @staticmethod
    def new_savepoint(env: Environment, max_parallelism: Any, state_backend: Any = None) -> SavepointWriter:
        """Begin a savepoint without operators.

        Flink: both `new_savepoint(env, 128)` and `new_savepoint(env, backend, 128)`.

        Args:
            env: The environment of the streams, or of the data sets, from which state is filled.
            max_parallelism: The number of key groups, from 1 to 32768. The job that restores the savepoint can have
                any parallelism up to it.
            state_backend: Where the job keeps the state before it is written; by default the environment's. The
                savepoint restores into either backend.
        """
        if max_parallelism is None or isinstance(max_parallelism, StateBackend):
            max_parallelism, state_backend = state_backend, max_parallelism
        return _writer(env, checked_max_parallelism(max_parallelism), None, state_backend)

    @staticmethod
    def from_existing_savepoint(
        env: Environment, path: str | os.PathLike[str], state_backend: StateBackend | None = None
    ) -> SavepointWriter:
        """Begin a savepoint with the operators of a savepoint or checkpoint.

        Args:
            env: The environment of the streams, or of the data sets, from which state is filled.
            path: Its directory or its `_metadata` file.
            state_backend: Where the job keeps the state before it is written; by default the environment's.
        """
        return _writer(env, None, os.fspath(path), state_backend)

    def with_operator(self, uid: OperatorIdentifier | str, transformation: StateBootstrapTransformation) -> Self:
        """Add an operator whose state is filled from a stream."""
        operator = identified(uid)
        if not isinstance(transformation, StateBootstrapTransformation):
            raise TypeError(
                f"with_operator() takes what transform() or a window returns, got {transformation!r}; see "
                "OperatorTransformation.bootstrap_with"
            )
        if transformation.environment is not self._env:
            raise InvalidProgramError("with_operator(): the data belongs to another environment than the savepoint")
        if operator.operator_id in self._planned:
            raise StateError(f"the savepoint already has an operator with {operator}; remove it first")
        self._planned.bootstrapped[operator.operator_id] = (operator, transformation)
        return self

    def remove_operator(self, uid: OperatorIdentifier | str) -> Self:
        """Leave out an operator, with its state."""
        operator = self._known(uid)
        self._planned.kept.pop(operator.operator_id, None)
        self._planned.bootstrapped.pop(operator.operator_id, None)
        return self

    def change_operator_identifier(self, from_uid: OperatorIdentifier | str, to_uid: OperatorIdentifier | str) -> Self:
        """Give the state of an operator to one with another uid or id."""
        before, now = self._known(from_uid), identified(to_uid)
        if now.operator_id in self._planned:
            raise StateError(f"the savepoint already has an operator with {now}; remove it first")
        planned = self._planned
        if before.operator_id in planned.kept:
            stored = planned.kept.pop(before.operator_id)
            planned.kept[now.operator_id] = replace(stored, metadata=_renamed(stored, now))
        else:
            planned.bootstrapped[now.operator_id] = (now, planned.bootstrapped.pop(before.operator_id)[1])
        return self

    def write(self, path: str | os.PathLike[str]) -> str:
        """Run the job that writes the savepoint, and return its path when it exists.

        Flink: there `write` only draws the job, and `execute` runs it.

        Args:
            path: A new directory, as a local path or a URL that all machines see.

        Raises:
            CheckpointError: The directory holds files already, or cannot be written to.
            JobExecutionError: The job failed.
        """
        planned = self._planned
        if not planned.kept and not planned.bootstrapped:
            raise InvalidProgramError("a savepoint needs an operator: call with_operator() before write()")
        with new_directory(os.fspath(path)) as files:
            savepoint = self._begun(files)
            bootstrapped = self._bootstrap(savepoint) if planned.bootstrapped else []
            savepoint.publish([*savepoint.copied(planned.kept.values()), *bootstrapped])
            return files.url

    def _begun(self, files: FileStore) -> NewSavepoint:
        if self._existing is None:
            return NewSavepoint(files, self._key, 1, secrets.token_hex(16), JOB_NAME)
        existing = self._existing.metadata
        return NewSavepoint(files, self._key, existing.checkpoint_id, existing.job_id, existing.job_name)

    def _bootstrap(self, savepoint: NewSavepoint) -> list[OperatorMetadata]:
        settings = self._env.job_settings(JOB_NAME).checkpoints
        where = SavepointFilesSpec(
            savepoint.files.address,
            savepoint.checkpoint_id,
            inline_bytes=settings.inline_threshold_bytes,
            compressed=settings.compression,
            hashed=self._key is not None,
        )
        most = self._default_max_parallelism()
        maxima = {id_: t.max_parallelism or most for id_, (_, t) in self._planned.bootstrapped.items()}
        first, *others = [
            transformation.snapshots(operator, where, maxima[operator.operator_id])
            for operator, transformation in self._planned.bootstrapped.values()
        ]
        written: dict[str, list[SubtaskSnapshot]] = defaultdict(list)
        for snapshot in run_bootstraps(self._env, first.union(*others) if others else first, JOB_NAME):
            written[snapshot.operators[0].operator_id].append(snapshot)
        missing = [str(operator) for id_, (operator, _) in self._planned.bootstrapped.items() if id_ not in written]
        if missing:
            raise CheckpointError(f"the job ended before it wrote the state of the operators with {', '.join(missing)}")
        return [operator_of(snapshots, maxima[id_]) for id_, snapshots in written.items()]

    def _default_max_parallelism(self) -> int:
        if self._max_parallelism is not None:
            return self._max_parallelism
        assert self._existing is not None, "a savepoint is either new, or based on another"
        stored = {o.max_parallelism for o in self._existing.metadata.operators if o.has_state}
        if len(stored) == 1:
            return stored.pop()
        raise InvalidProgramError(
            f"the operators of the savepoint have the max parallelisms {sorted(stored) or 'none'}: call "
            "set_max_parallelism() after bootstrap_with()"
        )

    def _known(self, uid: OperatorIdentifier | str) -> OperatorIdentifier:
        operator = identified(uid)
        if operator.operator_id not in self._planned:
            raise StateError(f"the savepoint has no operator with {operator}")
        return operator


def _writer(
    env: Environment, max_parallelism: int | None, path: str | None, state_backend: StateBackend | None
) -> SavepointWriter:
    if isinstance(env, ExecutionEnvironment):
        env = env.stream_environment()
    if not isinstance(env, StreamExecutionEnvironment):
        raise TypeError(f"a savepoint is written by the jobs of an environment, got {env!r}")
    if state_backend is not None:
        check_instance("SavepointWriter", state_backend, StateBackend)
        env.set_state_backend(state_backend)
    key = read_signing_key(env.job_settings(JOB_NAME).checkpoints.signing_key_file)
    existing = None if path is None else open_savepoint(path, key)
    return SavepointWriter(env, max_parallelism, existing, key)


def _renamed(stored: StoredOperator, now: OperatorIdentifier) -> OperatorMetadata:
    metadata = stored.metadata
    subtasks = tuple(
        None if s is None else replace(s, operator_id=now.operator_id, uid=now.uid) for s in metadata.subtasks
    )
    return replace(metadata, operator_id=now.operator_id, uid=now.uid, subtasks=subtasks)
