"""The connection of a subtask that runs continuously with its task: blobs in both directions, at the same time.

The mailbox never waits for a connection. What leaves a subtask is queued and sent by a thread; a subtask with a full
queue gets no turn until there is room. What arrives is read by another thread, which stops while too much waits to be
processed: the task, Spark's shuffle and at last the senders then wait too.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable

from tamias.slot.link import Link
from tamias.subtask.wire.frames import Blob

__all__ = ["Conduit"]

_QUEUE_BYTES = 4 << 20  # in each direction: some full blobs
_END = b""  # a message of no bytes: nothing more follows, and all is well

_Message = tuple[bytes | memoryview, ...]


class Conduit:
    """One subtask's connection.

    Args:
        link: The connection to the task.
        wake: Called when the subtask may have something to do again.
        lost: Called when the connection broke before `finish` or `abort`.
    """

    def __init__(self, link: Link, wake: Callable[[], None], lost: Callable[[], None]) -> None:
        self._link = link
        self._wake = wake
        self._lost = lost
        self._changed = threading.Condition(threading.Lock())
        self._queue: deque[_Message] = deque()
        self._queued_bytes = 0
        self._arrived_bytes = 0  # not taken yet
        self._ended = False
        self.messages = 0  # received and sent
        self._sender = threading.Thread(target=self._send_all, name="conduit", daemon=True)
        self._sender.start()

    @property
    def is_full(self) -> bool:
        """Whether more waits to be sent than the task takes now."""
        return self._queued_bytes >= _QUEUE_BYTES

    def send(self, blob: Blob) -> None:
        """Queue a blob. Returns at once."""
        with self._changed:
            self._queue.append(blob.encode())
            self._queued_bytes += blob.size_bytes
            self._changed.notify_all()

    def receive_all(self, give: Callable[[Blob], None]) -> None:
        """Give every blob that arrives to the subtask, until the connection ends."""
        try:
            while message := self._link.receive():
                blob = Blob.decode(message)
                with self._changed:
                    self._arrived_bytes += blob.size_bytes
                    give(blob)
                    self.messages += 1
                    self._wake()
                    self._changed.wait_for(lambda: self._arrived_bytes < _QUEUE_BYTES or self._ended)
        except (OSError, EOFError):
            self._break()

    def taken(self, size_bytes: int) -> None:
        """Note that the subtask has taken a blob, so that the next may be read."""
        with self._changed:
            self._arrived_bytes -= size_bytes
            self._changed.notify_all()

    def _send_all(self) -> None:
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: bool(self._queue))
                    message = self._queue.popleft()
                    was_full = self.is_full
                    self._queued_bytes -= sum(map(len, message))
                    frees = was_full and not self.is_full
                if frees:
                    self._wake()
                self._link.send(*message)
                self.messages += 1
                if message == (_END,):
                    return
        except OSError:
            self._break()

    def _break(self) -> None:
        with self._changed:
            ended, self._ended = self._ended, True
            self._changed.notify_all()
        if not ended:
            self._lost()

    def finish(self) -> None:
        """Let the task end: send what waits, and that nothing follows."""
        with self._changed:
            self._ended = True
            self._queue.append((_END,))
            self._changed.notify_all()

    def abort(self) -> None:
        """Break the connection: the attempt is over, and nobody wants what waits."""
        with self._changed:
            self._ended = True
            self._queue.clear()
            self._queue.append((_END,))
            self._changed.notify_all()
        with contextlib.suppress(OSError):
            self._link.shut_down()
