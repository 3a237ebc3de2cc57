"""The connections between a subtask and its Spark tasks: one brings the input blobs, one takes the output blobs.

One connection may do both. The mailbox never waits for a connection. A small output blob is sent at once, as far as the
connection takes it; the rest of it and larger blobs are queued and sent by a thread. A subtask whose queue is full does
nothing until there is room. Another thread reads the input. It stops reading while too much input waits to be
processed, and back-pressure reaches the task, Spark's shuffle and finally the senders.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from ekorn.links.link import Link
from ekorn.slot_protocol.task_messages import Carries
from ekorn.subtask.wire.frames import Blob

__all__ = ["Transport"]

_QUEUE_BYTES = 1 << 20  # bound of each direction, exceeded by at most a blob; a longer queue would add latency
_SMALL_BYTES = 16 << 10  # sending a blob up to this size costs less than handing it to a thread


class _Waiting(NamedTuple):
    """A message that waits to be sent, or the rest of one."""

    parts: tuple[bytes | memoryview, ...]
    is_rest: bool = False


_END = _Waiting((b"",))  # an empty message: the subtask has finished, and nothing follows


class Transport:
    """The connections of one subtask.

    Args:
        wake: Called when the subtask may have something to do again.
        lost: Called when a connection breaks before `finish` or `abort`. It gets what the task carried, and the error
            of a message that arrived, or None if the task is gone.
    """

    def __init__(self, wake: Callable[[], None], lost: Callable[[Carries, Exception | None], None]) -> None:
        self._wake = wake
        self._lost = lost
        lock = threading.Lock()  # guards everything below
        self._has_output = threading.Condition(lock)  # the sender alone waits for it
        self._has_room = threading.Condition(lock)  # there is room for input; the receiver alone waits for it
        self._inlet: Link | None = None
        self._outlet: Link | None = None
        self._queue: deque[_Waiting] = deque()
        self._queued_bytes = 0
        self._is_sending = False  # the thread sends a message that it has taken off the queue
        self._arrived_bytes = 0  # input that the subtask has not taken yet
        self._ended = False
        self.messages = 0  # number of blobs received and sent
        self._received_bytes = 0  # since the last call of `crossed_bytes`

    def attach(self, link: Link, carries: Carries) -> bool:
        """Use a connection from now on; return False if another one carries the same already."""
        with self._has_output:
            brings, takes = carries is not Carries.OUTPUT, carries is not Carries.INPUT
            if self._ended or (brings and self._inlet is not None) or (takes and self._outlet is not None):
                return False
            if brings:
                self._inlet = link
            if takes:
                self._outlet = link
                threading.Thread(target=self._send_all, args=(link,), name="transport", daemon=True).start()
            return True

    @property
    def attached(self) -> frozenset[Carries]:
        """The directions that have a connection."""
        carried = {Carries.INPUT: self._inlet, Carries.OUTPUT: self._outlet}
        return frozenset(carries for carries, link in carried.items() if link is not None)

    @property
    def is_full(self) -> bool:
        """Whether the output queue is full."""
        return self._queued_bytes >= _QUEUE_BYTES

    def send(self, blob: Blob) -> None:
        """Send a blob, or queue it. Returns at once."""
        with self._has_output:
            waiting = _Waiting(blob.encode())
            if not self._queue and not self._is_sending and blob.size_bytes <= _SMALL_BYTES:
                assert self._outlet is not None, "a subtask runs once its tasks have called"
                rest = self._outlet.send_now(*waiting.parts)
                if rest is None:
                    self.messages += 1
                    return
                waiting = _Waiting((rest,), is_rest=True)
            self._queue.append(waiting)
            self._queued_bytes += sum(map(len, waiting.parts))
            self._has_output.notify()

    def receive_all(self, link: Link, give: Callable[[Blob], None]) -> None:
        """Give every blob that arrives to the subtask, until the connection ends.

        A task that only takes output sends nothing, but the end of its connection shows that it is gone.
        """
        try:
            while message := link.receive():
                blob = Blob.decode(message)
                with self._has_room:
                    self._arrived_bytes += blob.size_bytes
                    self._received_bytes += blob.size_bytes
                    give(blob)
                    self.messages += 1
                    self._wake()
                    while self._arrived_bytes >= _QUEUE_BYTES and not self._ended:
                        self._has_room.wait()
        except (OSError, EOFError):
            self._break(link)
        except Exception as error:  # the message is no blob, or the subtask refuses it: the attempt fails
            self._break(link, error)

    def taken(self, size_bytes: int) -> None:
        """Note that the subtask has taken a blob, which makes room for the next."""
        with self._has_room:
            was_full = self._arrived_bytes >= _QUEUE_BYTES
            self._arrived_bytes -= size_bytes
            if was_full:
                self._has_room.notify()

    def crossed_bytes(self, sent_bytes: int) -> int:
        """Return the bytes that were exchanged with tasks on other hosts since the last call.

        Args:
            sent_bytes: The bytes that the subtask has sent since then.
        """
        with self._has_room:
            received, self._received_bytes = self._received_bytes, 0
        came = received if self._inlet is not None and self._inlet.crosses_hosts else 0
        return came + (sent_bytes if self._outlet is not None and self._outlet.crosses_hosts else 0)

    def _send_all(self, link: Link) -> None:
        try:
            while True:
                message = self._next()
                if message.is_rest:
                    link.send_rest(*message.parts)
                else:
                    link.send(*message.parts)
                self.messages += 1
                if message is _END:
                    return
        except OSError:
            self._break(link)

    def _next(self) -> _Waiting:
        """Wait for a message to send, and take it off the queue."""
        with self._has_output:
            self._is_sending = False
            while not self._queue:
                self._has_output.wait()
            self._is_sending = True
            message = self._queue.popleft()
            was_full = self.is_full
            self._queued_bytes -= sum(map(len, message.parts))
            frees = was_full and not self.is_full
        if frees:
            self._wake()
        return message

    def _break(self, broken: Link, error: Exception | None = None) -> None:
        with self._has_output:
            ended, self._ended = self._ended, True
            self._has_output.notify()
            self._has_room.notify()
        if not ended:
            self._lost(self._carried_by(broken), error)
            for link in (self._inlet, self._outlet):
                if link is not None:
                    link.shut_down()

    def _carried_by(self, link: Link) -> Carries:
        if self._inlet is self._outlet:
            return Carries.BOTH
        return Carries.INPUT if link is self._inlet else Carries.OUTPUT

    def finish(self) -> None:
        """End the tasks after all output: send what is queued, then an empty message."""
        self._end()
        if self._inlet is not None and self._inlet is not self._outlet:
            with contextlib.suppress(OSError):  # the task is gone already
                self._inlet.send(b"")

    def abort(self) -> None:
        """Break the connections and drop what is queued: the attempt is over."""
        with self._has_output:
            self._ended = True
            self._queue.clear()
        for link in (self._inlet, self._outlet):
            if link is not None:
                link.shut_down()  # first: a task must not take the empty message for the end of the subtask
        self._end()

    def _end(self) -> None:
        with self._has_output:
            self._ended = True
            self._queue.append(_END)
            self._has_output.notify()
            self._has_room.notify()
