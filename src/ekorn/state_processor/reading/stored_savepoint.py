"""A savepoint or checkpoint on storage as data: its operators, their states, and the files by key group.

Nothing here changes a savepoint, and nothing is unpickled. The values are pickled into jobs and Spark tasks, which open
the files by their address.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ekorn.checkpoint.metadata import CheckpointMetadata, OperatorMetadata
from ekorn.checkpoint.restore_point import resolve
from ekorn.checkpoint.signing import SigningKey, read_signing_key
from ekorn.config import options
from ekorn.config.starting_configuration import starting_configuration
from ekorn.errors import StateError
from ekorn.keygroups import KeyGroupRange
from ekorn.state.operator_state_files import OperatorState, decode_operator_state
from ekorn.state.snapshots import KeyedFiles, OperatorRestore, StateInfo
from ekorn.state.state_files import read_state
from ekorn.state_processor.operator_identifier import OperatorIdentifier, identified
from ekorn.storage.file_store import FileStore, open_files

__all__ = ["StoredOperator", "StoredSavepoint", "configured_key", "open_savepoint"]


@dataclass(frozen=True, slots=True)
class StoredOperator:
    """One operator of a savepoint, and where its files are.

    Attributes:
        address: The directory of the files, in the form `open_files` takes.
        checkpoint_id: The number of the savepoint.
        metadata: The operator's part of the savepoint.
    """

    address: str = field(repr=False)  # may hold credentials
    checkpoint_id: int
    metadata: OperatorMetadata

    @property
    def label(self) -> str:
        """The operator as messages name it."""
        return self.metadata.label()

    @property
    def keyed_states(self) -> tuple[StateInfo, ...]:
        """The descriptions of the keyed states, those of the runtime included."""
        return tuple(info for info in self.metadata.states if not info.of_subtask)

    def state(self, name: str, *, of_subtask: bool = False) -> StateInfo:
        """Return the description of a state.

        Raises:
            StateError: The operator has no state of this name.
        """
        kind = "operator state" if of_subtask else "keyed state"
        named = {info.name: info for info in self.metadata.states if info.of_subtask is of_subtask}
        if name not in named:
            has = ", ".join(map(repr, sorted(named))) or "none"
            raise StateError(f"operator {self.label} has no {kind} {name!r}; it has {has}")
        return named[name]

    def parts(self) -> list[KeyedFiles]:
        """Return the keyed state of each subtask that stored some: the units in which keyed state is read."""
        return [s.keyed for s in self.metadata.subtasks if s is not None and s.keyed is not None and s.keyed.files]

    def restore(self, part: KeyedFiles | None) -> OperatorRestore:
        """Return what a backend restores to hold one part, or no keyed state."""
        return OperatorRestore(
            operator_id=self.metadata.operator_id,
            keyed=() if part is None else (part,),
            states=self.metadata.states,
            restored_checkpoint_id=self.checkpoint_id,
            max_parallelism=self.metadata.max_parallelism,
            label=self.label,
        )

    @property
    def all_key_groups(self) -> KeyGroupRange:
        """All key groups of the operator."""
        return KeyGroupRange(0, self.metadata.max_parallelism - 1)

    def files(self) -> FileStore:
        """Open the directory of the files."""
        return open_files(self.address)

    def operator_states(self) -> list[OperatorState | None]:
        """Read the operator state of every subtask, by index. Its elements are bytes."""
        return [self.operator_state(subtask) for subtask in range(len(self.metadata.subtasks))]

    def operator_state(self, subtask: int) -> OperatorState | None:
        """Read the operator state of one subtask."""
        snapshot = self.metadata.subtasks[subtask]
        if snapshot is None or snapshot.operator_state is None:
            return None
        return decode_operator_state(read_state(self.files(), snapshot.operator_state), self.label)


@dataclass(frozen=True, slots=True)
class StoredSavepoint:
    """A savepoint or checkpoint on storage."""

    address: str = field(repr=False)  # may hold credentials
    url: str  # the address without credentials
    metadata: CheckpointMetadata

    def operators(self) -> list[StoredOperator]:
        """Return all operators, in the order of the job graph."""
        return [StoredOperator(self.address, self.metadata.checkpoint_id, each) for each in self.metadata.operators]

    def operator_by_id(self, operator_id: str) -> StoredOperator:
        """Return the operator with an id that the savepoint is known to have."""
        return self.operator(OperatorIdentifier(operator_id))

    def operator(self, identifier: OperatorIdentifier | str) -> StoredOperator:
        """Return one operator.

        Raises:
            StateError: The savepoint has no such operator.
        """
        wanted = identified(identifier)
        found = self.metadata.operator(wanted.operator_id)
        if found is None:
            there = "; ".join(each.label() for each in self.metadata.operators) or "none"
            raise StateError(
                f"{self.metadata.kind} {self.metadata.checkpoint_id} in {self.url} has no operator with {wanted}; "
                f"it has {there}"
            )
        return StoredOperator(self.address, self.metadata.checkpoint_id, found)


def open_savepoint(path: str, key: SigningKey | None = None) -> StoredSavepoint:
    """Open a savepoint or checkpoint.

    Args:
        path: Its directory or its `_metadata` file, as a local path or a URL.
        key: The key that it must be signed with; None accepts what is not signed.

    Raises:
        RestoreError: The path holds no checkpoint and no savepoint.
        CorruptFileError: The metadata cannot be read.
    """
    files, metadata = resolve(path, key)
    return StoredSavepoint(files.address, files.url, metadata)


def configured_key() -> SigningKey | None:
    """Return the key that the configuration file names: a savepoint that jobs refuse is refused here too."""
    return read_signing_key(options.SIGNING_KEY_FILE.read(starting_configuration()))
