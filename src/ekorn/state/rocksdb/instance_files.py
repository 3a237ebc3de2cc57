"""Write the files of a RocksDB instance to a checkpoint, and fetch them back.

A checkpoint of RocksDB is a folder of links: sorted files that never change, and two small files that say which of the
sorted files count. An incremental checkpoint writes the sorted files that the last completed checkpoint did not have to
`shared/`, and refers to the others. All other files go to the checkpoint's own directory, and so do the sorted files if
checkpoints are not incremental. `checkpoint/retention.py` counts the references.

In `KeyedFiles` each file has its name in the folder. A large file is written in pieces, so copying takes little memory:
`000012.sst`, `000012.sst+1`, ... in order. The name `heap` marks files of the tables beside RocksDB, which are read in
order like those of a heap backend.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
import weakref
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from ekorn.errors import CorruptFileError
from ekorn.keygroups import KeyGroupRange
from ekorn.state.keyed_backend import CapturedState, SnapshotTarget
from ekorn.state.snapshots import CANONICAL, ROCKSDB, KeyedFiles, StateFile
from ekorn.state.state_files import read_state
from ekorn.storage.file_store import FileStore

T = TypeVar("T")
R = TypeVar("R")

HEAP = "heap"
_SORTED = re.compile(r"[0-9]+\.sst")
_NEEDED = re.compile(r"[0-9]+\.sst|CURRENT|MANIFEST-[0-9]+")

Pieces = tuple[StateFile, ...]
Files = dict[str, Pieces]
"""The pieces of written sorted files, by the name of the file in RocksDB."""


class Uploads:
    """The sorted files of each checkpoint, which later checkpoints need not write again."""

    def __init__(self) -> None:
        self._written: dict[int, Files] = {}  # of pending checkpoints
        self._base: Files = {}  # of the last completed checkpoint
        self._lock = threading.Lock()  # `written` is called on the writing thread

    @property
    def base(self) -> Files:
        """The sorted files of the last completed checkpoint."""
        with self._lock:
            return self._base

    def start_from(self, files: Files) -> None:
        """Build on the restored checkpoint."""
        self._base = {name: pieces for name, pieces in files.items() if all(map(_is_shared, pieces))}

    def written(self, checkpoint_id: int, files: Files) -> None:
        """Note that all files of a snapshot are written. Called on the writing thread."""
        with self._lock:
            self._written[checkpoint_id] = files

    def completed(self, checkpoint_id: int) -> None:
        """Build later snapshots on this checkpoint."""
        with self._lock:
            self._base = self._written.get(checkpoint_id, self._base)
            self._written = {i: files for i, files in self._written.items() if i > checkpoint_id}


def _is_shared(file: StateFile) -> bool:
    return file.path is None or file.path.startswith("shared/")


class CapturedFolder:
    """A RocksDB checkpoint taken at the barrier. `write` may run on another thread while RocksDB continues."""

    def __init__(
        self,
        folder: str,
        beside: CapturedState,
        done: Callable[[Files], None],
        *,
        threads: int,
        piece_bytes: int,
        base: Files | None,
        prepare: Callable[[str], None] | None = None,
    ) -> None:
        """Take over the folder of a checkpoint.

        Args:
            folder: The links; removed with their parent folder when everything is written.
            beside: The captured tables beside RocksDB.
            done: Called with the sorted files once all are durable.
            threads: How many files to copy at once.
            piece_bytes: The size of the pieces in which a larger file is written.
            base: The files that need not be written again; None writes all files under `exclusive` names.
            prepare: Called with the folder before anything is written.
        """
        self.key_groups = KeyGroupRange(0, 0)  # until the subtask sets its own
        self._folder = folder
        self._beside = beside
        self._done = done
        self._threads = threads
        self._piece_bytes = piece_bytes
        self._base = base
        self._prepare = prepare
        # Also if `write` is never called, because the attempt ended before.
        self._remove = weakref.finalize(self, shutil.rmtree, os.path.dirname(folder), ignore_errors=True)

    def write(self, target: SnapshotTarget) -> KeyedFiles:
        """Write the new files and return all files."""
        try:
            if self._prepare is not None:
                self._prepare(self._folder)
            found = [name for name in sorted(os.listdir(self._folder)) if _NEEDED.fullmatch(name)]
            written = in_parallel(lambda name: self._write_one(target, name), found, self._threads)
        finally:
            self._remove()
        all_files = dict(zip(found, written, strict=True))
        self._done({name: pieces for name, pieces in all_files.items() if _SORTED.fullmatch(name)})
        self._beside.key_groups = self.key_groups
        beside = self._beside.write(target).files
        names = [f"{name}+{i}" if i else name for name, pieces in all_files.items() for i in range(len(pieces))]
        files = (*(piece for pieces in all_files.values() for piece in pieces), *beside)
        return KeyedFiles(*self.key_groups, files, format=ROCKSDB, names=(*names, *[HEAP] * len(beside)))

    def _write_one(self, target: SnapshotTarget, name: str) -> Pieces:
        is_sorted = _SORTED.fullmatch(name) is not None
        known = self._base.get(name) if self._base is not None and is_sorted else None
        if known is not None:
            return known
        fresh_name = target.shared if self._base is not None and is_sorted else target.exclusive
        pieces: list[StateFile] = []
        with open(os.path.join(self._folder, name), "rb") as file:
            while (payload := file.read(self._piece_bytes)) or not pieces:
                pieces.append(target.write(fresh_name("rocksdb"), payload))
        return tuple(pieces)


def fetch(part: KeyedFiles, store: FileStore, folder: str, threads: int) -> Files:
    """Copy the files of a part into a folder and check each one.

    Returns:
        The sorted files by name.

    Raises:
        CorruptFileError: A file is missing or damaged; the message names it.
    """
    os.makedirs(folder, exist_ok=True)
    files: Files = {}
    for name, file in zip(part.names, part.files, strict=True):
        whole, _, number = name.partition("+")
        if name == HEAP:
            continue
        if not _NEEDED.fullmatch(whole) or number != str(len(files.get(whole, ())) or ""):
            where = f"{store.url}/{file.path}" if file.path is not None else "(state kept inside the metadata)"
            raise CorruptFileError(where, f"a file called {name!r}", "a file of a RocksDB checkpoint")
        files[whole] = (*files.get(whole, ()), file)

    def fetch_one(name: str) -> None:
        with open(os.path.join(folder, name), "wb") as local:
            for piece in files[name]:
                local.write(read_state(store, piece))

    in_parallel(fetch_one, files, threads)
    return {name: pieces for name, pieces in files.items() if _SORTED.fullmatch(name)}


def beside_of(part: KeyedFiles) -> KeyedFiles:
    """Return the files of the tables beside RocksDB as a part in the canonical format."""
    files = tuple(file for name, file in zip(part.names, part.files, strict=True) if name == HEAP)
    return replace(part, files=files, format=CANONICAL, names=())


def in_parallel(call: Callable[[T], R], items: Iterable[T], threads: int) -> list[R]:
    """Call a function for each item, some at a time; raise the first error when all calls have ended."""
    listed = list(items)
    if threads == 1 or len(listed) < 2:
        return [call(item) for item in listed]
    with ThreadPoolExecutor(min(threads, len(listed)), thread_name_prefix="state-transfer") as pool:
        return list(pool.map(call, listed))
