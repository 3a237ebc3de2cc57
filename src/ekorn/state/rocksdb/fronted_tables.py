"""Tables in RocksDB whose entries in use are in a table of the operator: vectors instead of a dictionary.

RocksDB has what it has of a table with one value per key (`value_tables.py`), so every reader of such a state reads
this one. Many keys are read in one call, and written in the order of their addresses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ekorn.keygroups import KeyGroupRange
from ekorn.state.rocksdb.store import WriteBatch
from ekorn.state.rocksdb.tables import Flushed
from ekorn.state.rocksdb.value_bytes import with_original, without_original
from ekorn.state.rocksdb.value_tables import ValueTable
from ekorn.state.table import FrontTable


class FrontedTable(ValueTable):
    """A table with one value per key, behind a table of the operator.

    Args:
        table: The table so far, which has no entries in use.
        front: The table of the operator.
        key_groups: The key groups of the subtask.
    """

    def __init__(self, table: ValueTable, front: FrontTable, key_groups: KeyGroupRange) -> None:
        super().__init__(table.info, table.number, table._shared)
        self.declared = table.declared
        self._front = front
        self._key_groups = key_groups
        self.data = front.data  # for those who ask for its size

    # ------------------------------------------------------------------------------------------- for the table in front

    def read(self, keys: list[Any]) -> list[Any]:
        found = self._store.get_all([self.address(key)[0] for key in keys])
        decode = self._decode
        return [None if raw is None else decode(without_original(raw)) for raw in found]

    def scan(self) -> Iterator[tuple[Any, Any]]:
        self._write()
        return self.entries(self._key_groups)

    def spill(self) -> None:
        self._write()
        self._front.forget()

    def room_bytes(self) -> int:
        return self._shared.part_bytes()

    def value_bytes(self) -> int:
        values, size_bytes = self._seen
        return size_bytes // max(values, 1)

    # -------------------------------------------------------------------------------------------- for the instance

    def _write(self) -> None:
        batch = self._store.batch()
        self.flush(batch)
        batch.done()

    def flush(self, batch: WriteBatch) -> None:
        for keys, values in self._front.take_writes():
            self._some_key = keys[0]
            there = [at for at, value in enumerate(values) if value is not None]
            if len(there) == len(keys):
                self.saw(len(keys), batch.put_all(self._encoded(keys, values)))
                continue
            for key in (key for key, value in zip(keys, values, strict=True) if value is None):
                batch.delete(self.address(key)[0])
            self.saw(len(there), batch.put_all(self._encoded([keys[at] for at in there], [values[at] for at in there])))

    def _encoded(self, keys: list[Any], values: list[Any]) -> list[tuple[bytes, bytes]]:
        encoded = []
        for key, raw in zip(keys, self._encode_all(values), strict=True):
            address, exact = self.address(key)
            encoded.append((address, raw if exact else with_original(key, raw)))
        encoded.sort()
        return encoded

    def _flush(self, batch: WriteBatch) -> Flushed:
        raise AssertionError("the table in front has the changes")

    def peek(self, key: Any) -> Any:
        kept = self._front.known(key)
        return self.read([key])[0] if kept is None else kept

    def make_room(self) -> None:
        self.spill()

    def forget(self) -> None:
        self._front.forget()

    def forget_one(self, address: bytes, value: bytes) -> None:
        """Do nothing: an expired entry in use has its stamp, and expires where it is used."""
