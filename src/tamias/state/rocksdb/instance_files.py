"""The files of a RocksDB instance on their way to a checkpoint and back.

A checkpoint of RocksDB is a folder of links: sorted files that never change, and two small ones that say which of them
count. An incremental checkpoint writes the sorted files that the last completed one did not have to `shared/`, and
refers to the others; the rest, and everything else where checkpoints are not incremental, goes to the checkpoint's own
directory. `checkpoint/retention.py` counts who refers to what.

In `KeyedFiles` each file has its name in the folder. A large one is written in pieces, so that copying it takes little
memory: `000012.sst`, `000012.sst+1`, ... in their order. The name `heap` is for files of the tables beside RocksDB,
which are read in their order as a heap backend's.
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

from tamias.errors import CorruptFileError
from tamias.keygroups import KeyGroupRange
from tamias.state.keyed_backend import CapturedState, SnapshotTarget
from tamias.state.snapshots import CANONICAL, ROCKSDB, KeyedFiles, StateFile
from tamias.state.state_files import read_state
from tamias.storage.file_store import FileStore

T = TypeVar("T")
R = TypeVar("R")

HEAP = "heap"
PIECE_BYTES = 16 << 20
_SORTED = re.compile(r"[0-9]+\.sst")
_NEEDED = re.compile(r"[0-9]+\.sst|CURRENT|MANIFEST-[0-9]+")

Pieces = tuple[StateFile, ...]
Files = dict[str, Pieces]
"""Sorted files that were written, in pieces, by their names in RocksDB."""


class Uploads:
    """Which sorted files which checkpoint consists of: what a later one need not write again."""

    def __init__(self) -> None:
        self._written: dict[int, Files] = {}  # not yet completed
        self._base: Files = {}  # of the last completed checkpoint
        self._lock = threading.Lock()  # `written` comes from the writing thread

    @property
    def base(self) -> Files:
        """What the last completed checkpoint consists of."""
        with self._lock:
            return self._base

    def start_from(self, files: Files) -> None:
        """Build on the checkpoint that was restored."""
        self._base = {name: pieces for name, pieces in files.items() if all(map(_is_shared, pieces))}

    def written(self, checkpoint_id: int, files: Files) -> None:
        """A snapshot's files are all written."""
        with self._lock:
            self._written[checkpoint_id] = files

    def completed(self, checkpoint_id: int) -> None:
        """Build on this checkpoint from now on."""
        with self._lock:
            self._base = self._written.get(checkpoint_id, self._base)
            self._written = {i: files for i, files in self._written.items() if i > checkpoint_id}


def _is_shared(file: StateFile) -> bool:
    return file.path is None or file.path.startswith("shared/")


class CapturedFolder:
    """A folder of links, taken at the barrier; `write` may run on another thread while RocksDB goes on."""

    def __init__(
        self,
        folder: str,
        beside: CapturedState,
        done: Callable[[Files], None],
        *,
        threads: int,
        base: Files | None,
        prepare: Callable[[str], None] | None = None,
    ) -> None:
        """What was captured.

        Args:
            folder: The links; removed, with the folder made for it, when all is written.
            beside: The tables beside RocksDB.
            done: Told of the sorted files, once all are durable.
            threads: How many files to copy at once.
            base: The files that need not be written again; None to write all, to files of its own.
            prepare: Called with the folder before anything is written.
        """
        self.key_groups = KeyGroupRange(0, 0)  # until the subtask sets its own
        self._folder = folder
        self._beside = beside
        self._done = done
        self._threads = threads
        self._base = base
        self._prepare = prepare
        # Also when it is never written: the attempt may have ended before its turn came.
        self._remove = weakref.finalize(self, shutil.rmtree, os.path.dirname(folder), ignore_errors=True)

    def write(self, target: SnapshotTarget) -> KeyedFiles:
        """Write what is new, and name all files."""
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
            while (payload := file.read(PIECE_BYTES)) or not pieces:
                pieces.append(target.write(fresh_name("rocksdb"), payload))
        return tuple(pieces)


def fetch(part: KeyedFiles, store: FileStore, folder: str, threads: int) -> Files:
    """Bring the files of a part back into a folder, each proven to be the one that was written.

    Returns:
        The sorted files by name.

    Raises:
        CorruptFileError: A file is missing or damaged; says which.
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
    """The files of a part that hold the tables beside RocksDB, as a heap backend's."""
    files = tuple(file for name, file in zip(part.names, part.files, strict=True) if name == HEAP)
    return replace(part, files=files, format=CANONICAL, names=())


def in_parallel(call: Callable[[T], R], items: Iterable[T], threads: int) -> list[R]:
    """Call a function for each item, some at a time; the first error is raised when all have ended."""
    listed = list(items)
    if threads == 1 or len(listed) < 2:
        return [call(item) for item in listed]
    with ThreadPoolExecutor(min(threads, len(listed)), thread_name_prefix="state-transfer") as pool:
        return list(pool.map(call, listed))
