"""Sends cached files from the driver to slots that cannot see its disk: one archive for each file, in parts."""

from __future__ import annotations

import io
import tarfile
from typing import Any, Protocol

from ekorn.errors import DeploymentError
from ekorn.graph.job_graph import CachedFile
from ekorn.slot_protocol.cached_files import CONTENT, local_path
from ekorn.slot_protocol.messages import KeepFile, Request

PART_BYTES = 4 << 20


class Receiver(Protocol):
    """The part of a slot's handle that sending needs."""

    def tell(self, request: Request) -> None:
        """Send a request."""

    def answer(self) -> BaseException | None:
        """Wait for its answer."""


class NotSent(Exception):
    """A slot could not take a part of a file; the cause is the slot's error."""


def send_files(slot: Receiver, files: tuple[CachedFile, ...], part_bytes: int = PART_BYTES) -> BaseException | None:
    """Send a slot the files of this machine one after another; return the first error, or None."""
    for number, file in enumerate(files):
        path = local_path(file.path)
        if path is None:
            continue  # the slot fetches it by itself
        parts = _Parts(slot, number, file, part_bytes)
        try:
            with tarfile.open(fileobj=parts, mode="w|", dereference=True) as archive:
                archive.add(path, arcname=CONTENT)
            parts.send(last=True)
        except NotSent as error:
            return error.__cause__
        except OSError as error:
            return DeploymentError(f"the cached file {file.name!r} cannot be read from {path!r}: {error}")
    return None


class _Parts(io.RawIOBase):
    """A file that sends what is written to it in parts, and waits until the slot has taken each."""

    def __init__(self, slot: Receiver, number: int, file: CachedFile, part_bytes: int) -> None:
        self._slot = slot
        self._number = number
        self._file = file
        self._part_bytes = part_bytes
        self._part = bytearray()
        self._first = True

    def write(self, data: Any) -> int:
        self._part += data
        if len(self._part) >= self._part_bytes:
            self.send(last=False)
        return len(data)

    def send(self, *, last: bool) -> None:
        """Send what was written since the last part."""
        self._slot.tell(KeepFile(self._number, self._file, bytes(self._part), last, self._first))
        self._part.clear()
        self._first = False
        error = self._slot.answer()
        if error is not None:
            raise NotSent from error
