"""Bounds the memory that answers to queries of state take in a driver, whatever its clients ask and do not read."""

from __future__ import annotations

import threading

__all__ = ["ROOM", "AnswerRoom"]


class AnswerRoom:
    """Counts the bytes of values that wait to be sent. Thread-safe.

    Args:
        most_bytes: How many bytes may wait.

    Example:
        >>> room = AnswerRoom(100)
        >>> room.take(60), room.take(60), room.taken_bytes
        (True, False, 60)
        >>> room.give_back(60)
        >>> room.take(60)
        True
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.taken_bytes = 0
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Count values that have arrived; return False, and count nothing, if there is no room for them."""
        with self._lock:
            if self.taken_bytes + size > self.most_bytes:
                return False
            self.taken_bytes += size
            return True

    def keep(self, size: int) -> None:
        """Count bytes whose values had room until now, and which wait on."""
        with self._lock:
            self.taken_bytes += size

    def give_back(self, size: int) -> None:
        """Count bytes no more: they were sent or dropped."""
        with self._lock:
            self.taken_bytes -= size


ROOM = AnswerRoom(256 << 20)  # of all queries of this driver
