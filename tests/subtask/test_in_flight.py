"""Stored blobs: what is written comes back, divided among the new subtasks, and damage is found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.functions import CoMapFunction
from ekorn.errors import CorruptFileError
from ekorn.graph.addresses import ChannelId
from ekorn.keygroups import key_group_range
from ekorn.operators.mark import MarkOrder
from ekorn.state.snapshots import InFlightFiles, InFlightInput, InFlightRestore, Share
from ekorn.state.state_files import inline_state
from ekorn.subtask.in_flight import BlobPart, InFlight, KeyShare, restored_blobs
from ekorn.subtask.wire.frames import END, EPOCH, IDLE, RECORDS, WATERMARK, Blob, Frame
from ekorn.types.by_value import dumps
from tests.subtask.bench import Target

MAXIMUM = 16


def job():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.from_collection([1]).set_parallelism(1).rebalance().map(lambda v: v).key_by(lambda v: v).map(str).print()
    graph = env.job_graph("job")
    return graph, graph.exchanges[-1]


GRAPH, EXCHANGE = job()
CHANNELS = [ChannelId(EXCHANGE.id, 0), ChannelId(EXCHANGE.id, 1)]


def store(blobs: list[BlobPart | Blob], target: Target) -> InFlightFiles:
    stored = InFlight(GRAPH, EXCHANGE.target, tuple(blobs)).write(target)
    return InFlightFiles((), ()) if stored is None else stored


def key_share(index: int, parallelism: int) -> KeyShare:
    return KeyShare(lambda v: v, MAXIMUM, key_group_range(MAXIMUM, parallelism, index))


def back(stored: InFlightFiles, target: Target, share: Share, *, index: int = 0, parallelism: int = 1, **kept: bool):
    plan = InFlightRestore(stored.files, (InFlightInput(EXCHANGE.id, share, **kept),))
    return list(
        restored_blobs([plan], target.files, channels=CHANNELS, key_share=lambda _: key_share(index, parallelism))
    )


def blob(*frames: Frame, sender: int = 0, mark: int = -1) -> Blob:
    return Blob(EXCHANGE.id, sender, 0, 0, dumps(list(frames)), mark)


def test_records_and_watermarks_come_back_and_what_senders_say_again_does_not() -> None:
    target = Target()
    first = blob((RECORDS, [1, 2], [5, 6]), (WATERMARK, 6), (IDLE, True), sender=1)
    last = blob((RECORDS, [3], None), (END, False), (EPOCH, MarkOrder(9)), mark=9)
    stored = store([first, last], target)
    whole = back(stored, target, Share.ALL, keeps_watermarks=True)
    assert [(part.channel, part.frames()) for part in whole] == [
        ((EXCHANGE.id, 1), [(RECORDS, [1, 2], [5, 6]), (WATERMARK, 6)]),
        ((EXCHANGE.id, 0), [(RECORDS, [3], None)]),
    ]
    rescaled = back(stored, target, Share.ALL)
    assert [part.frames() for part in rescaled] == [[(RECORDS, [1, 2], [5, 6])], [(RECORDS, [3], None)]]
    assert back(stored, target, Share.NONE) == []


def test_a_mark_is_never_stored() -> None:
    target = Target()
    stored = store([blob((RECORDS, [1], None), (EPOCH, MarkOrder(9)), mark=9)], target)
    assert all(b"MarkOrder" not in target.files.read(file.path or "") for file in stored.files)


def test_marks_alone_are_nothing_in_flight() -> None:
    order, target = MarkOrder(9), Target()
    marks = [blob((EPOCH, order), mark=9), blob((IDLE, True), (EPOCH, order), sender=1, mark=9)]
    assert InFlight(GRAPH, EXCHANGE.target, tuple(marks)).write(target) is None
    watermark = blob((WATERMARK, 6), (EPOCH, order), mark=9)
    (part,) = back(store([*marks, watermark], target), target, Share.ALL, keeps_watermarks=True)
    assert part.frames() == [(WATERMARK, 6)], "no record may follow that brings the watermark again"


def test_the_records_of_a_sender_that_is_gone_come_on_another_channel() -> None:
    target = Target()
    stored = store([blob((RECORDS, [1], None), sender=7)], target)
    assert [part.channel for part in back(stored, target, Share.ALL)] == [CHANNELS[0]]


@given(
    runs=st.lists(st.lists(st.integers(-40, 40), max_size=8), max_size=4),
    parallelism=st.integers(1, MAXIMUM),
    payload_bytes=st.integers(1, 200),
)
def test_every_keyed_record_goes_to_one_new_subtask_in_order(runs, parallelism, payload_bytes) -> None:
    target = Target(payload_bytes)
    stored = store([blob((RECORDS, run, [n for n, _ in enumerate(run)])) for run in runs], target)
    found: dict[int, list[tuple[int, int]]] = {}
    for index in range(parallelism):
        for part in back(stored, target, Share.OWN_KEYS, index=index, parallelism=parallelism):
            for _, values, times in part.frames():
                assert len(values) == len(times)
                for value in values:
                    found.setdefault(value, []).append((index, value))
    sent = [value for run in runs for value in run]
    assert {value: len(times) for value, times in found.items()} == {value: sent.count(value) for value in sent}
    assert all(len({index for index, _ in where}) == 1 for where in found.values())


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (lambda data: b"X" + data[1:], "XKOFLGT"),
        (lambda data: data[:7] + b"\x02" + data[8:], "version 2"),
        (lambda data: data[:-1], "a blob of input 0"),
        (lambda data: data + b"!", "1 bytes too many"),
        (lambda data: data[:20], "20 bytes"),
        (lambda data: data[:4], "EKOF"),
        (lambda data: data[:15] + b"\x05" + data[16:], "input 5"),
    ],
)
def test_damaged_and_foreign_bytes_are_refused(damage, found) -> None:
    target = Target()
    stored = store([blob((RECORDS, [1], None))], target)
    (file,) = stored.files
    payload = target.files.read(file.path or "")[-(file.size) :]
    changed = InFlightFiles(stored.inputs, (inline_state(damage(payload)),))
    with pytest.raises(CorruptFileError, match=found):
        back(changed, target, Share.ALL)


class Both(CoMapFunction):
    def map1(self, value):
        return value

    def map2(self, value):
        return value


def test_an_input_without_blobs_is_left_out() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    numbers = env.from_collection([1]).set_parallelism(1).rebalance().map(lambda v: v)
    numbers.key_by(lambda v: v).connect(numbers.key_by(lambda v: v)).map(Both()).print()
    graph = env.job_graph("two inputs")
    _, second = graph.inputs_of(graph.exchanges[-1].target)
    target = Target()
    sent = Blob(second.id, 0, 0, 0, dumps([(RECORDS, [1], None)]))
    stored = InFlight(graph, second.target, (sent,)).write(target)
    assert stored is not None
    assert [each.input_index for each in stored.inputs] == [second.input_index]
