"""Runs in Spark's Python worker: asks a slot to run one subtask's epoch.

`testing/process_engine.py` calls it from threads of the driver instead, where there is no Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ekorn.engine.subtask_outcome import PickledOutput, SubtaskOutcome
from ekorn.links.link import Link
from ekorn.slot_protocol.task_messages import ACK, OUTPUT, RunEpoch
from ekorn.subtask.wire.frames import is_blob
from ekorn.types.by_value import dumps


class SubtaskCall:
    """One subtask's epoch, asked of its slot. Blobs go in one at a time, and come out one at a time.

    A failure of the connection while blobs go in is raised by `answer`, when the caller has passed on all other rows.

    Args:
        connect: Returns the connection to the slot. Called before the first message.
        request: The epoch.
    """

    def __init__(self, connect: Callable[[], Link], request: RunEpoch) -> None:
        self._connect = connect
        self._request = request
        self._error: OSError | EOFError | None = None
        self.link: Link | None = None  # once the call has begun
        self.is_over = False  # the connection can be used for the next call

    def give(self, blob: bytes | memoryview) -> None:
        """Send a blob of the epoch's input. Waits while the slot does not take it."""
        if self._error is None:
            try:
                self._begun().send(blob)
            except (OSError, EOFError) as error:
                self._error = error

    def answer(self) -> Iterator[bytes | PickledOutput | SubtaskOutcome]:
        """Let the subtask run; yield the encoded blobs and output that leave it, then the outcome.

        Raises:
            OSError: The slot or the connection to it is gone.
            EOFError: The slot closed the connection.
        """
        if self._error is not None:
            raise self._error
        link = self._begun()
        link.send(b"")
        while is_blob(message := link.receive()) or message[:1] == OUTPUT:
            yield message if is_blob(message) else PickledOutput(message[1:])
        self.is_over = True
        yield SubtaskOutcome(succeeded=message[:1] == ACK, pickled=message[1:])

    def _begun(self) -> Link:
        if self.link is None:
            self.link = self._connect()
            self.link.send(dumps(self._request))
        return self.link
