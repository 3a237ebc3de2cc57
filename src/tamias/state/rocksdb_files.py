"""The files of a RocksDB instance on their way to a checkpoint and back.

A checkpoint of RocksDB is a folder of links: sorted files that never change, and two small ones that say which of them
count. An incremental checkpoint writes the sorted files that the last completed one did not have to `shared/`, and
refers to the others; the rest, and everything else where checkpoints are not incremental, goes to the checkpoint's own
directory. `checkpoint/retention.py` counts who refers to what.

In `KeyedFiles` each file has its name in the folder. The name `heap` is for those of the tables beside RocksDB, which
are read in their order as a heap backend's.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from tamias.errors import CorruptFileError
from tamias.state.files import FileStore, read_state
from tamias.state.keyed import CapturedState, SnapshotTarget
from tamias.state.snapshots import ROCKSDB, KeyedFiles, StateFile

T = TypeVar("T")
R = TypeVar("R")

HEAP = "heap"
_SORTED = re.compile(r"[0-9]+\.sst")
_NEEDED = re.compile(r"[0-9]+\.sst|CURRENT|MANIFEST-[0-9]+")

Files = dict[str, StateFile]
"""Sorted files that were written, by their names in RocksDB."""


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
        self._base = {name: file for name, file in files.items() if file.path is None or _is_shared(file.path)}

    def written(self, checkpoint_id: int, files: Files) -> None:
        """A snapshot's files are all written."""
        with self._lock:
            self._written[checkpoint_id] = files

    def completed(self, checkpoint_id: int) -> None:
        """Build on this checkpoint from now on."""
        with self._lock:
            self._base = self._written.get(checkpoint_id, self._base)
            self._written = {i: files for i, files in self._written.items() if i > checkpoint_id}


def _is_shared(path: str) -> bool:
    return path.startswith("shared/")


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
        self.key_groups: tuple[int, int] = (0, 0)
        self._folder = folder
        self._beside = beside
        self._done = done
        self._threads = threads
        self._base = base
        self._prepare = prepare

    def write(self, target: SnapshotTarget) -> KeyedFiles:
        """Write what is new, and name all files."""
        try:
            if self._prepare is not None:
                self._prepare(self._folder)
            names = [name for name in sorted(os.listdir(self._folder)) if _NEEDED.fullmatch(name)]
            files = in_parallel(lambda name: self._write_one(target, name), names, self._threads)
        finally:
            shutil.rmtree(os.path.dirname(self._folder), ignore_errors=True)
        self._done({n: file for n, file in zip(names, files, strict=True) if _SORTED.fullmatch(n)})
        self._beside.key_groups = self.key_groups
        beside = self._beside.write(target).files
        names += [HEAP] * len(beside)
        return KeyedFiles(*self.key_groups, (*files, *beside), format=ROCKSDB, names=tuple(names))

    def _write_one(self, target: SnapshotTarget, name: str) -> StateFile:
        is_sorted = _SORTED.fullmatch(name) is not None
        known = self._base.get(name) if self._base is not None and is_sorted else None
        if known is not None:
            return known
        with open(os.path.join(self._folder, name), "rb") as file:
            payload = file.read()
        shared = self._base is not None and is_sorted
        return target.write(target.shared("rocksdb") if shared else target.exclusive("rocksdb"), payload)


def fetch(part: KeyedFiles, store: FileStore, folder: str, threads: int) -> Files:
    """Bring the files of a part back into a folder, each proven to be the one that was written.

    Returns:
        The sorted files by name.

    Raises:
        CorruptFileError: A file is missing or damaged; says which.
    """
    os.makedirs(folder, exist_ok=True)
    pairs = [(name, file) for name, file in zip(part.names, part.files, strict=True) if name != HEAP]

    def fetch_one(pair: tuple[str, StateFile]) -> None:
        name, file = pair
        if not _NEEDED.fullmatch(name):
            where = f"{store.url}/{file.path}" if file.path is not None else "(state kept inside the metadata)"
            raise CorruptFileError(where, f"a file called {name!r}", "a file of a RocksDB checkpoint")
        with open(os.path.join(folder, name), "wb") as local:
            local.write(read_state(store, file))

    in_parallel(fetch_one, pairs, threads)
    return {name: file for name, file in pairs if _SORTED.fullmatch(name)}


def beside_of(part: KeyedFiles) -> KeyedFiles:
    """The files of a part that hold the tables beside RocksDB, as a heap backend's."""
    files = tuple(file for name, file in zip(part.names, part.files, strict=True) if name == HEAP)
    return replace(part, files=files, format="heap", names=())


def in_parallel(call: Callable[[T], R], items: Iterable[T], threads: int) -> list[R]:
    """Call a function for each item, some at a time; the first error is raised when all have ended."""
    listed = list(items)
    if threads == 1 or len(listed) < 2:
        return [call(item) for item in listed]
    with ThreadPoolExecutor(min(threads, len(listed)), thread_name_prefix="state-transfer") as pool:
        return list(pool.map(call, listed))
