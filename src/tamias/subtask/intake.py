"""The entry of records into the chain: on arrival, or in BATCH mode once other records have come first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tamias.codegen.chain_compiler import InputLoops
from tamias.codegen.key_code import key_function
from tamias.operators.operator import RuntimeOperator
from tamias.subtask.batch_order import Held, HeldBack, KeySorter
from tamias.subtask.outbox import Outbox
from tamias.subtask.sort_keys import sort_key_for
from tamias.subtask.wire.frames import Blob


class Intake:
    """Runs records through the loops of the chain, or holds them until the input has ended."""

    def __init__(self, head: RuntimeOperator, loops: tuple[InputLoops, ...], held: Held | None) -> None:
        self.record_count = 0  # since the epoch began
        self._head = head
        self._loops = loops
        self._held = held

    @property
    def holds_records(self) -> bool:
        """Whether records wait for the end of the input, and watermarks with them."""
        return self._held is not None

    def process(self, values: list[Any], times: list[int | None] | None, input_index: int = 0) -> None:
        self.record_count += len(values)
        if self._held is not None and self._held.holds(input_index):
            self._held.add(values, times, input_index)
        elif times is None:
            self._loops[input_index].process(values)
        else:
            self._loops[input_index].process_timed(values, times)

    def run_held(self, outbox: Outbox) -> Iterator[Blob]:
        """Process the held records. Keyed records come key by key, and the state of a key is dropped after its last."""
        assert self._held is not None, "holds_records is asked first"
        head = self._head
        for parts in self._held.groups():
            for part in parts:
                loops = self._loops[part.input_index]
                if any(t is not None for t in part.times):
                    loops.process_timed(part.values, part.times)
                else:
                    loops.process(part.values)
            if head.backend is not None:
                head.end_key()
                head.backend.drop_all()
            yield from outbox.take_full()
        self._held = None


def held_in_batch(head: RuntimeOperator, scratch: Callable[[], str]) -> Held | None:
    """Return what holds records in BATCH mode; None where records are processed on arrival."""
    if head.backend is not None:
        operator = head.operator
        assert operator.key is not None
        key_of = [None if key is None else key_function(key) for key in operator.keys or (operator.key,)]
        return KeySorter(key_of, sort_key_for(operator.key.type_info), scratch)
    waiting = [n for n in range(len(head.inputs())) if n != head.first_input]
    return HeldBack(waiting, scratch) if len(head.inputs()) > 1 else None
