"""The files that a program brings to all workers."""

from __future__ import annotations

import os

from ekorn.graph.job_graph import CachedFile

__all__ = ["CachedFileRegistry"]


class CachedFileRegistry:
    """The part of an environment that registers cached files."""

    def __init__(self) -> None:
        self._cached_files: dict[str, CachedFile] = {}

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Bring a file or folder to every worker; functions find it through `get_distributed_cache`.

        Args:
            file_path: A path or a URL. A file on this machine is sent to workers that cannot see it. A remote file
                (``s3://``, ``hdfs://``, ``https://``, whatever pyarrow or fsspec opens) is fetched by each of them.
            name: The name that functions ask for.
            executable: Whether the copy, or every file of the folder, may be executed.
        """
        if not isinstance(name, str) or not name:
            raise ValueError(f"a cached file needs a name, got {name!r}")
        given = CachedFile(name, os.fspath(file_path), bool(executable))
        known = self._cached_files.setdefault(name, given)
        if known != given:
            raise ValueError(f"a cached file is already registered as {name!r}: {known.path!r}")
