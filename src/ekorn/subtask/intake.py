"""Lets records into the chain: on arrival, or in BATCH mode after the records that have to come first."""

from __future__ import annotations

import datetime
import pickle
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ekorn.codegen.chain_compiler import InputLoops
from ekorn.codegen.key_code import key_function
from ekorn.columns.columns_type import has_columns, row_count
from ekorn.graph.job_graph import Operator
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.operator import RuntimeOperator
from ekorn.subtask.batch_order import ArrivalBuffer, KeySorter, RecordBuffer
from ekorn.subtask.exchange_writer import FULL_RUN
from ekorn.subtask.outbox import Emitted, Outbox
from ekorn.types import basic_types as basic
from ekorn.types.by_value import IMMUTABLE, dumps
from ekorn.types.composite_types import TupleTypeInfo
from ekorn.types.type_information import TypeInformation

_FIRST_RUN = 16  # records that enter the chain first, before it is known how much they become
_SHORT_RUN = 64  # records that need no measuring
_GROWTH = 4
_PAUSES_S = 0.001  # between two pauses of a subtask whose state is queried


class Intake:
    """Runs records through the loops of the chain, or buffers them until the input has ended."""

    def __init__(
        self,
        head: RuntimeOperator,
        loops: tuple[InputLoops, ...],
        buffer: RecordBuffer | None,
        outbox: Outbox,
        environment: SubtaskEnvironment,
        *,
        counts: Sequence[Callable[[list[Any]], int]] = (),
    ) -> None:
        self.record_count = 0  # since the epoch began
        self.byte_count = 0  # of the blobs that other subtasks sent, since the epoch began
        self._head = head
        self._loops = loops
        self._buffer = buffer
        self._outbox = outbox
        self._counts = counts or [len] * len(loops)
        self._run_length = _FIRST_RUN  # records that enter the chain before full blobs leave
        self._give_way = environment.give_way
        self._monotonic = environment.clock.monotonic
        self._quick_length = FULL_RUN  # records that enter the chain before readers of state are answered

    @property
    def buffers_records(self) -> bool:
        """Whether records wait for the end of the input, and watermarks with them."""
        return self._buffer is not None

    def process(self, values: list[Any], times: list[int | None] | None, input_index: int = 0) -> None:
        self.record_count += self._counts[input_index](values)
        if self._buffer is not None and self._buffer.buffers(input_index):
            self._buffer.add(values, times, input_index)
        else:
            self._run(self._loops[input_index], values, times)
        self._give_way()

    def _run(self, loops: InputLoops, values: list[Any], times: list[int | None] | None) -> None:
        """Run records through the chain, at most `_run_length` at a time. Readers of state are answered between runs.

        The length is adapted to the bytes that the chain emits for a record: a chain that emits thousands of records
        for each one gets a few at a time, and its output leaves between them. If state is queried, the length is also
        adapted to the time that records take, because a query waits for the end of a run.
        """
        if self._run_length == FULL_RUN and len(values) <= min(_SHORT_RUN, self._quick_length):
            # A short run through a chain that emits little needs no measuring: BATCH mode has a run for every key.
            if times is None:
                loops.process(values)
            else:
                loops.process_timed(values, times)
            return
        outbox, start = self._outbox, 0
        while start < len(values):
            length = min(self._run_length, self._quick_length)
            whole = start == 0 and length >= len(values)
            part = values if whole else values[start : start + length]
            before, began = outbox.held_bytes(), self._monotonic()
            if times is None:
                loops.process(part)
            else:
                loops.process_timed(part, times if whole else times[start : start + length])
            start += len(part)
            took_s = self._monotonic() - began
            bytes_a_record = max(0.0, outbox.held_bytes() - before) / len(part)
            if bytes_a_record * length > outbox.blob_bytes:
                self._run_length = max(1, int(outbox.blob_bytes / bytes_a_record))
            elif bytes_a_record * length * _GROWTH <= outbox.blob_bytes:
                self._run_length = min(length * _GROWTH, FULL_RUN)
            outbox.relieve()
            self._quick_length = _length_for(_PAUSES_S, len(part), took_s) if self._give_way() else FULL_RUN

    def run_buffered(self, outbox: Outbox) -> Iterator[Emitted]:
        """Process the buffered records. Keyed records come key by key, and a key's state is dropped after its last."""
        assert self._buffer is not None, "buffers_records is asked first"
        head = self._head
        for parts in self._buffer.groups():
            for part in parts:
                timed = any(t is not None for t in part.times)
                self._run(self._loops[part.input_index], part.values, part.times if timed else None)
            if head.backend is not None:
                head.end_key()
                head.backend.drop_all()
            yield from outbox.take_full()
        self._buffer = None


def counts_of(operator: Operator) -> list[Callable[[list[Any]], int]]:
    """Return for each input of a head how its records are counted: batches of columns by their rows."""
    types = operator.input_types or (operator.input_type or operator.output_type,)
    return [row_count if has_columns(each) else len for each in types]


def _length_for(seconds: float, records: int, took_s: float) -> int:
    """Return the number of records that take `seconds`, if `records` took `took_s`; at most four times `records`."""
    most = min(records * _GROWTH, FULL_RUN)
    return most if took_s * most <= seconds * records else max(1, int(seconds * records / took_s))


def batch_buffer(head: RuntimeOperator, scratch: Callable[[], str], in_memory: int) -> RecordBuffer | None:
    """Return what buffers records in BATCH mode; None if records are processed on arrival."""
    if has_columns(head.operator.input_type):
        return None  # operators on columns take batches on arrival, and emit when the input ends
    if head.backend is not None:
        operator = head.operator
        assert operator.key is not None
        key_of = [None if key is None else key_function(key) for key in operator.keys or (operator.key,)]
        return KeySorter(key_of, sort_key_for(operator.key.type_info), scratch=scratch, in_memory=in_memory)
    waiting = [n for n in range(len(head.inputs())) if n != head.first_input]
    return ArrivalBuffer(waiting, scratch=scratch, in_memory=in_memory) if len(head.inputs()) > 1 else None


_SIGNED = bytes(byte ^ 0x80 for byte in range(256))  # maps signed order to unsigned order
_NUMBERS = {"Byte": ">b", "Short": ">h", "Integer": ">i", "Long": ">q", "Double": ">d", "Float": ">f", "Boolean": ">?"}
_EPOCH = datetime.date(1970, 1, 1)


def sort_key_for(type_info: TypeInformation | None) -> Callable[[Any], bytes]:
    """Return the function that makes a sort key from a key. Two keys have one sort key only if they are one key."""
    encode = _encoder(type_info)
    return lambda key: encode(key).translate(_SIGNED)


def _encoder(type_info: TypeInformation | None) -> Callable[[Any], bytes]:
    number = _NUMBERS.get(str(type_info))
    if number is not None:
        return struct.Struct(number).pack
    if isinstance(type_info, basic.StringTypeInfo):
        return _text
    if isinstance(type_info, basic.DateTypeInfo):
        return lambda key: struct.pack(">q", (key - _EPOCH).days * 86_400_000)
    if isinstance(type_info, TupleTypeInfo):
        fields = [_encoder(field) for field in type_info.get_field_types()]
        return lambda key: b"".join(encode(part) for encode, part in zip(fields, key, strict=True))
    return _pickle


def _pickle(key: Any) -> bytes:
    # Flink: equal keys that share their parts differently have different pickles, by accident, and are two keys. Here
    # a round trip without the pickle memo makes them equal.
    if type(key) not in IMMUTABLE:
        key = pickle.loads(dumps(key))
    try:
        data = pickle.dumps(key, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        data = dumps(key)  # the class of the key cannot be imported
    return struct.pack(">i", len(data)) + data


def _text(key: str) -> bytes:
    """Encode the number of UTF-16 units plus one, then the units; each as groups of seven bits, lowest first."""
    data = key.encode("utf-16-be", "surrogatepass")
    units = struct.unpack(f">{len(data) // 2}H", data)
    return b"".join(map(_groups_of_seven_bits, (len(units) + 1, *units)))


def _groups_of_seven_bits(number: int) -> bytes:
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)
