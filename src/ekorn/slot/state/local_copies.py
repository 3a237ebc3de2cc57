"""Local recovery: a slot keeps copies of the state files of its newest checkpoint on its own disk.

A slot that restarts on the same host reads the copies instead of fetching the files from the checkpoint directory. The
checkpoint directory is authoritative: a copy is used only if its size and checksum are those in the checkpoint's
metadata, and a missing or damaged copy is skipped silently. So copies need not be durable, and must never fail a job.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator

from ekorn.checkpoint.file_names import SHARED, checkpoint_id_of, created_for
from ekorn.config.job_id import JobID
from ekorn.config.settings.checkpoint_settings import LocalCopySettings
from ekorn.errors import CorruptFileError, UnsafeFolderError
from ekorn.state.snapshots import RestorePlan, StateFile, SubtaskSnapshot
from ekorn.state.state_files import state_in
from ekorn.storage.file_store import FileStore
from ekorn.storage.private_folder import PrivateFolder

__all__ = ["LocalCopies"]

_log = logging.getLogger(__name__)
_OWN_NAME = re.compile(r"(0|[1-9][0-9]*)-.+")  # as `SnapshotNames` makes them


class LocalCopies:
    """The copies of one slot, in a directory that the next slot of the same job and number finds again.

    The directory's name can be predicted, and other users can write to the temporary directory above it. A directory
    that is not this user's alone is not touched: the job goes on without copies, and one warning says so.
    """

    def __init__(self, settings: LocalCopySettings, job_id: str, slot: int) -> None:
        roots = settings.directories or (tempfile.gettempdir(),)
        self._path = os.path.join(roots[slot % len(roots)], f"ekorn-local-{JobID(job_id)}")
        self._slot = slot
        self._settings = settings
        self._refused = False  # the directory is not this user's alone
        self._of_checkpoint: dict[int, set[str]] = {}  # paths that this slot's snapshots of the checkpoint refer to
        self.used = 0  # number of files that were read from a copy

    # ------------------------------------------------------------------------------------------------------- writing

    def copying(self, store: FileStore) -> FileStore:
        """Return the store, wrapped so that every file written to it is also copied."""
        return _Copying(store, self) if self._settings.write else store

    def keep(self, path: str, data: bytes) -> None:
        """Write a copy; log a warning if that fails."""
        if (parts := _parts(path)) is None:
            return
        directory, name = parts
        try:
            with self._slot_folder(create=True) as slot, slot.below(directory) as folder:
                folder.write(name, data)
        except UnsafeFolderError as error:
            self._refuse(error)
        except OSError as error:
            _log.warning("no local copy of %s: %s", path, error)

    def written(self, checkpoint_id: int, snapshot: SubtaskSnapshot) -> None:
        """Remember the files of a subtask's snapshot, so that `completed` keeps their copies."""
        paths = self._of_checkpoint.setdefault(checkpoint_id, set())
        for operator in snapshot.operators:
            paths.update(file.path for file in operator.files() if file.path is not None)

    def completed(self, checkpoint_id: int) -> None:
        """Delete the copies of older checkpoints to which a completed checkpoint does not refer."""
        needed = self._of_checkpoint.get(checkpoint_id, set())
        self._of_checkpoint = {i: paths for i, paths in self._of_checkpoint.items() if i > checkpoint_id}
        self._delete_copies(lambda path, made_for: path not in needed and made_for <= checkpoint_id)

    def remove(self) -> None:
        """Delete all copies of this slot when the job ends."""
        self._delete_copies(lambda path, made_for: True)
        try:
            with PrivateFolder.opened(self._path, create=False) as job:
                job.remove_if_empty(f"slot-{self._slot}")
        except UnsafeFolderError as error:
            self._refuse(error)
            return
        except FileNotFoundError:
            return  # no copy was ever made
        with contextlib.suppress(OSError):  # another slot of this host has copies there
            os.rmdir(self._path)

    def _delete_copies(self, chosen: Callable[[str, int], bool]) -> None:
        """Delete the chosen files, by path and checkpoint. A name that no copy of ours has is left alone."""
        try:
            with self._slot_folder(create=False) as slot:
                for directory in slot.names():
                    if directory == SHARED or checkpoint_id_of(directory) is not None:
                        self._delete_in(slot, directory, chosen)
        except FileNotFoundError:
            return  # no copy was ever made
        except UnsafeFolderError as error:
            self._refuse(error)
        except OSError as error:
            _log.warning("local copies in %s could not be deleted: %s", self._path, error)

    def _delete_in(self, slot: PrivateFolder, directory: str, chosen: Callable[[str, int], bool]) -> None:
        with slot.below(directory, create=False) as folder:
            for name in folder.names():
                path = f"{directory}/{name}"
                made_for = created_for(path)
                if _parts(path) is not None and made_for is not None and chosen(path, made_for):
                    folder.delete(name)
        slot.remove_if_empty(directory)

    # ------------------------------------------------------------------------------------------------------- reading

    def reading(self, store: FileStore, plan: RestorePlan) -> FileStore:
        """Return the store of a restore, wrapped so that it reads a copy where there is a good one."""
        return _ReadingThrough(store, self, _proofs(plan)) if self._settings.read else store

    def find(self, proof: StateFile) -> bytes | None:
        """Return the whole file with its header if there is an undamaged copy, or None."""
        assert proof.path is not None
        if (parts := _parts(proof.path)) is None:
            return None  # a file of a savepoint, which has no copies
        directory, name = parts
        try:
            with self._slot_folder(create=False) as slot, slot.below(directory, create=False) as folder:
                data = folder.read(name)
            state_in(data, proof, proof.path)
        except UnsafeFolderError as error:
            self._refuse(error)
            return None
        except (CorruptFileError, OSError):
            return None
        self.used += 1
        return data

    # ------------------------------------------------------------------------------------------------- the directory

    @contextlib.contextmanager
    def _slot_folder(self, *, create: bool) -> Iterator[PrivateFolder]:
        with (
            PrivateFolder.opened(self._path, create=create) as job,
            job.below(f"slot-{self._slot}", create=create) as slot,
        ):
            yield slot

    def _refuse(self, error: UnsafeFolderError) -> None:
        if not self._refused:
            self._refused = True
            _log.warning("slot %d continues without local copies of its state: %s", self._slot, error)


def _parts(path: str) -> tuple[str, str] | None:
    """Split the path of a checkpoint's state file into directory and name; None for any other path.

    >>> _parts("shared/7-v2-s0-a1.0-00ff"), _parts("v2-s0-00ff"), _parts("chk-7/..")
    (('shared', '7-v2-s0-a1.0-00ff'), None, None)
    """
    directory, _, name = path.rpartition("/")
    return (directory, name) if created_for(path) is not None and _OWN_NAME.fullmatch(name) else None


def _proofs(plan: RestorePlan) -> dict[str, StateFile]:
    proofs: dict[str, StateFile] = {}
    for subtask in plan.subtasks.values():
        for operator in subtask.operators:
            files: Iterable[StateFile | None] = (
                *(file for keyed in operator.keyed for file in keyed.files),
                *operator.operator_state,
            )
            proofs.update({file.path: file for file in files if file is not None and file.path is not None})
    return proofs


class _Delegating:
    """A store that passes every call on to another one."""

    def __init__(self, store: FileStore) -> None:
        self._store = store

    @property
    def url(self) -> str:
        return self._store.url

    @property
    def address(self) -> str:
        return self._store.address

    @property
    def exclusive(self) -> bool:
        return self._store.exclusive

    @property
    def in_process(self) -> bool:
        return self._store.in_process

    def read(self, path: str) -> bytes:
        return self._store.read(path)

    def write(self, path: str, data: bytes) -> None:
        self._store.write(path, data)

    def publish(self, path: str, data: bytes) -> None:
        self._store.publish(path, data)

    def replace(self, path: str, data: bytes) -> None:
        self._store.replace(path, data)

    def exists(self, path: str) -> bool:
        return self._store.exists(path)

    def size(self, path: str) -> int:
        return self._store.size(path)

    def list(self, directory: str = "") -> list[str]:
        return self._store.list(directory)

    def delete(self, path: str) -> None:
        self._store.delete(path)

    def delete_tree(self, path: str) -> None:
        self._store.delete_tree(path)

    def make_dirs(self, path: str) -> None:
        self._store.make_dirs(path)

    def below(self, path: str) -> FileStore:
        return self._store.below(path)


class _Copying(_Delegating):
    """Writes a local copy of every file beside the original."""

    def __init__(self, store: FileStore, copies: LocalCopies) -> None:
        super().__init__(store)
        self._copies = copies

    def write(self, path: str, data: bytes) -> None:
        super().write(path, data)
        self._copies.keep(path, data)


class _ReadingThrough(_Delegating):
    """Reads a file from its local copy if that is undamaged, else from the store."""

    def __init__(self, store: FileStore, copies: LocalCopies, proofs: dict[str, StateFile]) -> None:
        super().__init__(store)
        self._copies = copies
        self._proofs = proofs

    def read(self, path: str) -> bytes:
        proof = self._proofs.get(path)
        copy = self._copies.find(proof) if proof is not None else None
        return super().read(path) if copy is None else copy
