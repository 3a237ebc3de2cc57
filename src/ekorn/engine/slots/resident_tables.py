"""The driver's side of resident tables: begins attempts, commits what tasks wrote, ends the slots.

The tables of an iteration lie in slots of their own, which live as long as the iteration's result is needed. A slot
that is lost loses its partitions. The iteration then begins a new attempt, with empty tables in all slots: the tables
of the other slots belong to a superstep that cannot continue.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.errors import SlotLostError
from ekorn.links.link import Address
from ekorn.slot_protocol.messages import Request
from ekorn.slot_protocol.table_messages import BeginTables, CommitTables, Fence, NamedWrite, TableKind

_attempts = itertools.count(1)


def next_attempt() -> int:
    """Return a number that no other attempt of this driver has: iterations may use slots again."""
    return next(_attempts)


class ResidentTables:
    """The resident tables of one iteration.

    Args:
        pool: The slots. The tables own them from now on.
        kinds: The tables, by number.
        memory_bytes: The size of writes and bags that a slot keeps in memory before it uses its disk.
    """

    def __init__(self, pool: SlotPool, kinds: Sequence[TableKind], memory_bytes: int) -> None:
        self._pool = pool
        self._kinds = tuple(kinds)
        self._memory_bytes = memory_bytes
        self.fence = Fence(0, 0)

    @property
    def secret(self) -> bytes:
        return self._pool.secret

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The addresses of the slots in this attempt."""
        return tuple(slot.address for slot in self._pool.slots)

    @property
    def slot_pids(self) -> tuple[int, ...]:
        """The process ids of the slots, by number."""
        return tuple(slot.process.pid for slot in self._pool.slots)

    def begin(self) -> None:
        """Begin an attempt with empty tables; replace slots that are gone.

        Raises:
            SlotLostError: A slot was lost meanwhile.
        """
        self._pool.ensure()
        self.fence = Fence(next_attempt(), 0)
        self._ask_each(BeginTables(self.fence.attempt, self._kinds, self._memory_bytes) for _ in self._pool.slots)

    def commit(self, writes: Iterable[NamedWrite]) -> None:
        """Let these writes take effect in all slots, and drop all others.

        Raises:
            SlotLostError: A slot was lost. Some slots may have committed: only a new attempt can follow.
        """
        count = len(self._pool.slots)
        by_slot: list[list[NamedWrite]] = [[] for _ in range(count)]
        for write in writes:
            by_slot[write.target.partition % count].append(write)
        self._ask_each(CommitTables(self.fence, tuple(of_slot)) for of_slot in by_slot)
        self.fence = Fence(self.fence.attempt, self.fence.commits + 1)

    def lost(self) -> SlotLostError | None:
        """Return the error of a slot that is gone, or None if all are there."""
        for slot in self._pool.slots:
            if not slot.process.alive:
                return slot.loss("its process ended")
        return None

    def close(self) -> None:
        """End the slots."""
        self._pool.shutdown()

    def _ask_each(self, requests: Iterable[Request]) -> None:
        for slot, request in zip(self._pool.slots, requests, strict=True):
            slot.tell(request)
        errors = [slot.answer() for slot in self._pool.slots]
        for error in errors:
            if error is not None:
                raise error
