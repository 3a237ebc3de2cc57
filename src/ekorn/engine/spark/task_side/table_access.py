"""Runs in Spark's Python worker: reads and writes the partitions of resident tables in the slots.

Every call is one message and its answer, so calls about several tables may alternate on one connection.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ekorn.engine.spark.task_side.slot_links import drop_link, link_to
from ekorn.errors import SlotLostError
from ekorn.links.link import Address
from ekorn.slot_protocol.table_messages import (
    Fence,
    LookUp,
    NamedWrite,
    ReadTable,
    TablePartition,
    TableRequest,
    WriteTable,
)
from ekorn.slot_protocol.task_messages import ACK
from ekorn.types.by_value import dumps


@dataclass(frozen=True)
class TableAccess:
    """The slots of an iteration, as a task of one superstep may use them."""

    addresses: tuple[Address, ...]  # by slot; partition p of every table lies in slot p modulo their number
    secret: bytes = field(repr=False)
    fence: Fence

    def look_up(self, target: TablePartition, keys: list[Hashable]) -> list[Sequence[Any]]:
        """Return the elements that a partition keeps for each key."""
        found: list[Sequence[Any]] = pickle.loads(self._ask(target, LookUp(self.fence, target, dumps(keys))))
        return found

    def read(self, target: TablePartition) -> Iterator[Any]:
        """Yield all elements of a partition."""
        number = 0
        while part := self._ask(target, ReadTable(self.fence, target, number)):
            yield from pickle.loads(part)
            number += 1

    def new_write(self, target: TablePartition) -> NamedWrite:
        """Begin a write under a token of its own. It takes effect when the driver commits it."""
        write = NamedWrite(target, uuid.uuid4().hex)
        self.write_part(write, b"")  # a write without elements empties a bag
        return write

    def write_part(self, write: NamedWrite, part: bytes) -> None:
        """Add a part to a write."""
        self._ask(write.target, WriteTable(self.fence, write, part))

    def _ask(self, target: TablePartition, request: TableRequest) -> memoryview:
        slot = target.partition % len(self.addresses)
        address = self.addresses[slot]
        try:
            link = link_to(address, self.secret)
            link.send(dumps(request))
            answer = link.receive()
        except (OSError, EOFError) as error:
            drop_link(address, self.secret)
            raise SlotLostError(slot, str(error) or type(error).__name__) from error
        if answer[:1] == ACK:
            return memoryview(answer)[1:]
        raise pickle.loads(answer[1:])
