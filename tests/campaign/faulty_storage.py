"""A storage that fails on demand, in every process of a job: a directory behind the scheme `faulty://`.

At every call it reads the faults to inject from the JSON file that `EKORN_FAULTY_CONTROL` names:

    {"rate": 0.1, "error": "EIO"}      one call in ten fails, half of those calls after they took effect
    {"rate": 1.0, "error": "ENOSPC"}   the disk is full: no write works
    {"rate": 1.0, "error": "EROFS"}    it is read-only
    {"rate": 1.0, "path": "owner/"}    only calls for paths that contain this text fail
    {"rate": 1.0, "writes_only": true}  only calls that write fail
    {"delay_ms": 800}                  every write takes that long

The driver calls `register`, and lets its slots call it.
"""

from __future__ import annotations

import errno
import json
import os
import random
import time
from collections.abc import Callable
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

CONTROL = "EKORN_FAULTY_CONTROL"
_chance = random.Random(os.getpid())
_WRITES_ONLY = ("ENOSPC", "EROFS")


class FaultyFileSystem(LocalFileSystem):
    """A local directory with the faults that the control file asks for."""

    protocol = "faulty"
    root_marker = "/"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return LocalFileSystem._strip_protocol(str(path).removeprefix("faulty://"))

    def cat_file(self, path: str, *args: Any, **kwargs: Any) -> Any:
        return _faulty(path, False, lambda: LocalFileSystem.cat_file(self, path, *args, **kwargs))

    def pipe_file(self, path: str, value: bytes, *args: Any, **kwargs: Any) -> Any:
        return _faulty(path, True, lambda: LocalFileSystem.pipe_file(self, path, value, *args, **kwargs))

    def mv(self, path1: str, path2: str, *args: Any, **kwargs: Any) -> Any:
        return _faulty(path2, True, lambda: os.replace(self._strip_protocol(path1), self._strip_protocol(path2)))

    def info(self, path: str, *args: Any, **kwargs: Any) -> Any:
        return _faulty(path, False, lambda: LocalFileSystem.info(self, path, *args, **kwargs))

    def ls(self, path: str, *args: Any, **kwargs: Any) -> Any:
        return _faulty(path, False, lambda: LocalFileSystem.ls(self, path, *args, **kwargs))

    def rm_file(self, path: str) -> Any:
        return _faulty(path, True, lambda: os.unlink(self._strip_protocol(path)))

    def rm(self, path: str, *args: Any, **kwargs: Any) -> Any:
        return _faulty(path, True, lambda: LocalFileSystem.rm(self, path, *args, **kwargs))

    def makedirs(self, path: str, *args: Any, **kwargs: Any) -> Any:
        return _faulty(path, True, lambda: LocalFileSystem.makedirs(self, path, *args, **kwargs))


def _faulty(path: str, writes: bool, call: Callable[[], Any]) -> Any:
    wanted = _control()
    error = wanted.get("error", "EIO")
    if writes and wanted.get("delay_ms"):
        time.sleep(wanted["delay_ms"] / 1000)
    failing = _chance.random() < wanted.get("rate", 0.0) and (writes or error not in _WRITES_ONLY)
    failing = failing and wanted.get("path", "") in path and (writes or not wanted.get("writes_only"))
    number = getattr(errno, error)
    if failing and (error in _WRITES_ONLY or _chance.random() < 0.5):
        raise OSError(number, f"{os.strerror(number)} (injected)")
    result = call()
    if failing:
        raise OSError(number, f"{os.strerror(number)} (injected, though it worked)")
    return result


def _control() -> dict[str, Any]:
    path = os.environ.get(CONTROL)
    if not path:
        return {}
    try:
        with open(path) as file:
            return dict(json.load(file))
    except FileNotFoundError:
        return {}


def set_faults(control: str, **faults: Any) -> None:
    """Change the faults, for all processes at once."""
    draft = f"{control}.draft"
    with open(draft, "w") as file:
        json.dump(faults, file)
    os.replace(draft, control)


def register() -> None:
    """Register the scheme in this process."""
    fsspec.register_implementation("faulty", FaultyFileSystem, clobber=True)
