"""The distributed cache in Spark's Python workers: one copy of a job's files in each worker that asks for them.

A path of the driver's machine is copied by workers of that machine. On a cluster the driver sends an archive as a
broadcast, and each worker unpacks it. Other addresses are downloaded by each worker.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ekorn.errors import DeploymentError
from ekorn.functions.runtime_context import DistributedCache
from ekorn.graph.job_graph import CachedFile
from ekorn.slot_protocol.cached_files import CONTENT, CachedFiles, checked, local_path
from ekorn.storage.scratch_folders import LocalFolder

__all__ = ["JobFiles", "WorkerCache", "packed_files"]

_MOST_JOBS = 8
_copies: dict[str, tuple[LocalFolder, CachedFiles]] = {}  # by job; a folder goes with its worker, or a later job


@dataclass(frozen=True)
class JobFiles:
    """The files that a program registered, and the broadcasts of those that workers cannot see, by number."""

    files: tuple[CachedFile, ...] = ()
    archives: dict[int, Any] = field(default_factory=dict)


def packed_files(files: tuple[CachedFile, ...], broadcast: Callable[[bytes], Any] | None) -> JobFiles:
    """Return the files of a job for its tasks.

    Args:
        files: What the program registered.
        broadcast: Sends bytes to the workers; None if they are on this machine.

    Raises:
        FileNotFoundError: A file of this machine does not exist.
    """
    found = checked(files)
    archives = {}
    if broadcast is not None:
        for number, file in enumerate(found):
            path = local_path(file.path)
            if path is not None:
                packed = io.BytesIO()
                with tarfile.open(fileobj=packed, mode="w", dereference=True) as archive:
                    archive.add(path, arcname=CONTENT)
                archives[number] = broadcast(packed.getvalue())
    return JobFiles(found, archives)


class WorkerCache(DistributedCache):
    """The files of a job, as a function finds them."""

    def __init__(self, job_id: str, files: JobFiles) -> None:
        self._job_id = job_id
        self._files = files

    def get_file(self, name: str) -> str:
        """Return the path of a file's copy; the first call in a worker makes the copies.

        Raises:
            UnsupportedOperationError: No file is registered under this name.
            DeploymentError: A file cannot be copied or downloaded.
        """
        return self._of_worker().path_of(name)

    def _of_worker(self) -> CachedFiles:
        if self._job_id not in _copies:
            while len(_copies) >= _MOST_JOBS:
                _copies.pop(next(iter(_copies)))[0].close()
            folder = LocalFolder(tempfile.gettempdir(), "ekorn-batch-files-")
            made = CachedFiles(folder.path)
            try:
                for number, archive in self._files.archives.items():
                    made.receive(number, self._files.files[number], archive.value, last=True, first=True)
                made.fetch(self._files.files)
            except (OSError, tarfile.TarError) as error:
                folder.close()
                raise DeploymentError(f"the cached files of the job cannot be copied: {error}") from error
            _copies[self._job_id] = (folder, made)
        return _copies[self._job_id][1]
