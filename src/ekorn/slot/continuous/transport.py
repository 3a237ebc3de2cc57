"""The connections of a subtask that runs continuously with its tasks: one brings its blobs, one takes what leaves it.

One connection may do both. The mailbox never waits for a connection. A small blob that leaves a subtask is sent at
once, as far as the connection takes it; the rest and larger blobs are queued and sent by a thread. A subtask with a
full queue gets no turn until there is room. What arrives is read by another thread, which stops while too much waits to
be processed: the task, Spark's shuffle and at last the senders then wait too.
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

_QUEUE_BYTES = 1 << 20  # in each direction, and one blob more: what waits is old when it is processed
_SMALL_BYTES = 16 << 10  # a blob that costs less to send than to hand to a thread


class _Waiting(NamedTuple):
    """A message that waits to be sent, or the rest of one."""

    parts: tuple[bytes | memoryview, ...]
    is_rest: bool = False


_END = _Waiting((b"",))  # a message of no bytes: nothing more follows, and all is well


class Transport:
    """The connections of one subtask.

    Args:
        wake: Called when the subtask may have something to do again.
        lost: Called when a connection broke before `finish` or `abort`: with what its task carried, and what is wrong
            with a message that arrived, or None if the task is gone.
    """

    def __init__(self, wake: Callable[[], None], lost: Callable[[Carries, Exception | None], None]) -> None:
        self._wake = wake
        self._lost = lost
        lock = threading.Lock()  # of everything below
        self._waits = threading.Condition(lock)  # for something to send; the sender alone waits
        self._has_room = threading.Condition(lock)  # for what arrives; the receiver alone waits
        self._inlet: Link | None = None
        self._outlet: Link | None = None
        self._queue: deque[_Waiting] = deque()
        self._queued_bytes = 0
        self._is_sending = False  # what is not in the queue any more
        self._arrived_bytes = 0  # not taken yet
        self._ended = False
        self.messages = 0  # received and sent
        self._received_bytes = 0  # since `crossed_bytes` was called

    def attach(self, link: Link, carries: Carries) -> bool:
        """Use a connection from now on; return False if there is one already for what it carries."""
        with self._waits:
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
        """What the tasks that have called carry: input, output or both of them."""
        carried = {Carries.INPUT: self._inlet, Carries.OUTPUT: self._outlet}
        return frozenset(carries for carries, link in carried.items() if link is not None)

    @property
    def is_full(self) -> bool:
        """Whether more waits to be sent than the task takes now."""
        return self._queued_bytes >= _QUEUE_BYTES

    def send(self, blob: Blob) -> None:
        """Send a blob, or queue it. Returns at once."""
        with self._waits:
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
            self._waits.notify()

    def receive_all(self, link: Link, give: Callable[[Blob], None]) -> None:
        """Give every blob that arrives to the subtask, until the connection ends.

        Nothing arrives from a task that only takes blobs, but the end of its connection shows that it is gone.
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
        except Exception as error:  # a message that is no blob, or one that the subtask refuses: the attempt fails
            self._break(link, error)

    def taken(self, size_bytes: int) -> None:
        """Note that the subtask has taken a blob, so that the next may be read."""
        with self._has_room:
            was_full = self._arrived_bytes >= _QUEUE_BYTES
            self._arrived_bytes -= size_bytes
            if was_full:
                self._has_room.notify()

    def crossed_bytes(self, sent_bytes: int) -> int:
        """Return how many bytes came from tasks on other hosts since the last call, and of those sent went to some."""
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
        """Wait for something to send, and take it."""
        with self._waits:
            self._is_sending = False
            while not self._queue:
                self._waits.wait()
            self._is_sending = True
            message = self._queue.popleft()
            was_full = self.is_full
            self._queued_bytes -= sum(map(len, message.parts))
            frees = was_full and not self.is_full
        if frees:
            self._wake()
        return message

    def _break(self, broken: Link, error: Exception | None = None) -> None:
        with self._waits:
            ended, self._ended = self._ended, True
            self._waits.notify()
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
        """Let the tasks end: send what waits, and that nothing follows."""
        self._end()
        if self._inlet is not None and self._inlet is not self._outlet:
            with contextlib.suppress(OSError):  # the task is gone, and nobody needs it any more
                self._inlet.send(b"")

    def abort(self) -> None:
        """Break the connections: the attempt is over, and nobody wants what waits."""
        with self._waits:
            self._ended = True
            self._queue.clear()
        for link in (self._inlet, self._outlet):
            if link is not None:
                link.shut_down()  # first: the tasks must not take the end of the sender for that of the subtask
        self._end()

    def _end(self) -> None:
        with self._waits:
            self._ended = True
            self._queue.append(_END)
            self._waits.notify()
            self._has_room.notify()
