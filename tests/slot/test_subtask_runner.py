"""When a subtask that runs continuously gets a step, and what leaves it then: driven step by step on a manual clock."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from ekorn.clock import ManualClock
from ekorn.common import WatermarkStrategy
from ekorn.datastream.columns import ColumnGeneratorSource
from ekorn.datastream.functions import KeyedProcessFunction
from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader
from ekorn.graph.addresses import SubtaskId
from ekorn.links.link import Link
from ekorn.operators.epoch import OutputPart
from ekorn.operators.mark import MarkAck, MarkOrder
from ekorn.slot.continuous.mailbox import Mailbox
from ekorn.slot.continuous.subtask_runner import SubtaskRunner
from ekorn.slot.event_reports import Reports
from ekorn.slot.host import SlotHost
from ekorn.slot.user_code_lock import UserCodeLock
from ekorn.slot_protocol.slot_events import EpochAcknowledged, OutputLeft
from ekorn.slot_protocol.task_messages import Carries
from ekorn.subtask.wire.frames import EPOCH, RECORDS, WATERMARK, Blob
from ekorn.table import DataTypes
from ekorn.types.by_value import dumps
from tests.live_jobs import until
from tests.slot.small_job import deployment, graph

SOURCE, MIDDLE, LAST = SubtaskId(0, 0), SubtaskId(1, 0), SubtaskId(2, 0)
MEBIBYTE = 1 << 20
MARK = (EPOCH, MarkOrder(0))
waiting: deque[list[int]] = deque()  # what the source hands over, one run in each read
reads: list[int] = []  # of the source: how many records it could have handed over
slow_clock: list[ManualClock] = []  # advanced by a millisecond for each record, if there is one


class Scripted(Source):
    """Hands over the runs in `waiting`, one at a time, and never ends."""

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        return [Split("only")]

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        return ScriptedReader()


class ScriptedReader(SplitReader):
    def read(self, max_records: int) -> Batch:
        reads.append(max_records)
        values = waiting.popleft() if waiting else []
        for clock in slow_clock:
            clock.advance(len(values))
        return Batch(values, values)

    def position(self) -> int:
        return 0

    @property
    def finished(self) -> bool:
        return False


class Alarm(KeyedProcessFunction):
    """Sets a timer at the time that a record names, and tells when it fires."""

    def process_element(self, value, ctx):
        for clock in slow_clock:
            clock.advance(1)
        if type(value) is int and value >= 0:
            ctx.timer_service().register_processing_time_timer(value)
        yield value

    def on_timer(self, timestamp, ctx):
        yield f"alarm {timestamp}"


class Bench:
    """One subtask of source -> alarm -> print in a slot of its own, its clock, and the other end of its connection."""

    def __init__(
        self,
        subtask: SubtaskId,
        *,
        watermark_ms: int = 0,
        buffer_timeout_ms: int = 125,
        unaligned: bool = False,
        parallelism: int = 1,
        slot_hosts: tuple[str, ...] = (),
        source: Source | None = None,
    ) -> None:
        waiting.clear()
        reads.clear()
        slow_clock.clear()

        def draw(env: Any) -> None:
            env.get_config().set_auto_watermark_interval(watermark_ms)
            env.get_checkpoint_config().enable_unaligned_checkpoints(unaligned)
            strategy = WatermarkStrategy.for_monotonous_timestamps()
            numbers = env.from_source(source or Scripted(), strategy, "numbers")
            numbers.key_by(lambda v: 0).process(Alarm()).rebalance().map(lambda v: v).print()

        self.clock = ManualClock(1_000)
        self.host = SlotHost(0, self.clock, lambda event: None)
        self.reports = Reports()
        deployed = deployment(
            graph(draw, parallelism, checkpoints=unaligned),
            continuous=True,
            buffer_timeout_ms=buffer_timeout_ms,
            slot_hosts=slot_hosts,
        )
        self.host.deploy(deployed, [subtask])
        self.exchange = deployed.graph.inputs_of(LAST.vertex if subtask == LAST else MIDDLE.vertex)[0].id
        mailbox = Mailbox(self.host, UserCodeLock(), self.clock, self.reports)
        self.runner = SubtaskRunner(self.host, subtask, deployed, mailbox)
        ours, theirs = socket.socketpair()
        self.ours, self.theirs = Link(ours), Link(theirs)
        self.theirs.settimeout(30)
        self._sent = 0

    def attach(self) -> None:
        assert self.runner.attach(self.ours, Carries.BOTH)

    def attach_to_another_host(self) -> None:
        """Let the task be on another host: its address differs from the slot's."""
        self.theirs.close()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            theirs = socket.create_connection(listening.getsockname(), source_address=("127.0.0.2", 0))
            self.ours, self.theirs = Link(listening.accept()[0]), Link(theirs)
        self.theirs.settimeout(30)
        self.attach()
        arguments = self.ours, self.runner.give
        threading.Thread(target=self.runner.transport.receive_all, args=arguments, daemon=True).start()

    def give(self, *values: Any) -> None:
        self._give([(RECORDS, list(values), None)])

    def give_mark(self) -> None:
        self._give([(EPOCH, MarkOrder(0))])

    def _give(self, frames: list[Any]) -> None:
        self.runner.give(Blob(self.exchange, 0, 0, self._sent, dumps(frames)))
        self._sent += 1

    def receive(self) -> list[Any]:
        """Return the records and marks of the next blob."""
        frames = Blob.decode(self.theirs.receive()).frames()
        return [value for frame in frames for value in (frame[1] if frame[0] == RECORDS else [frame])]

    def close(self) -> None:
        self.runner.leave(in_order=False)
        self.host.shutdown()
        self.theirs.close()


@pytest.fixture
def benches() -> Iterator[list[Bench]]:
    made: list[Bench] = []
    yield made
    for bench in made:
        bench.close()


def bench_of(benches: list[Bench], subtask: SubtaskId, *, unaligned: bool = False, **settings: Any) -> Bench:
    benches.append(Bench(subtask, unaligned=unaligned, **settings))
    return benches[-1]


def test_a_subtask_gets_no_step_before_its_task_has_called(benches: list[Bench]) -> None:
    bench = bench_of(benches, MIDDLE)
    bench.give("a")
    assert bench.runner.step(0.0) == 0.5
    assert bench.runner.messages == 0
    bench.attach()
    assert bench.runner.step(0.0) == 0.0
    assert bench.receive() == ["a"]


def test_a_subtask_in_the_middle_waits_for_the_tasks_of_both_directions(benches: list[Bench]) -> None:
    bench = bench_of(benches, MIDDLE)
    bench.give("a")
    assert bench.runner.attach(bench.ours, Carries.OUTPUT)
    assert bench.runner.step(0.0) == 0.5
    ours, theirs = socket.socketpair()
    assert bench.runner.attach(Link(ours), Carries.INPUT)
    assert bench.runner.step(0.0) == 0.0
    assert bench.receive() == ["a"]
    theirs.close()


def test_output_leaves_with_the_last_blob_that_waits_or_after_the_buffer_timeout(benches: list[Bench]) -> None:
    bench = bench_of(benches, MIDDLE)
    bench.attach()
    for value in "abcdef":
        bench.give(value)
    for now in (0.0625, 0.125, 0.1875, 0.25, 0.3125, 0.34375):
        assert bench.runner.step(now) == 0.0
    assert [bench.receive(), bench.receive(), bench.receive()] == [["a", "b"], ["c", "d"], ["e", "f"]]


def test_the_first_record_leaves_at_once_and_those_of_the_next_millisecond_together(benches: list[Bench]) -> None:
    bench = bench_of(benches, MIDDLE)
    bench.attach()
    for value, now in (("a", 1.0), ("b", 1.0003), ("c", 1.0006)):
        bench.give(value)
        assert bench.runner.step(now) == 0.0
    assert bench.runner.step(1.0006) == pytest.approx(0.0004)
    bench.runner.step(1.0011)
    bench.give("d")
    bench.runner.step(1.0025)
    assert [bench.receive(), bench.receive(), bench.receive()] == [["a"], ["b", "c"], ["d"]]


def test_output_is_gathered_no_longer_than_the_buffer_timeout(benches: list[Bench]) -> None:
    bench = bench_of(benches, MIDDLE, buffer_timeout_ms=0)
    bench.attach()
    for value, now in (("a", 1.0), ("b", 1.0003)):
        bench.give(value)
        assert bench.runner.step(now) == 0.0
        assert bench.receive() == [value], "it waits for no other"


def test_a_mark_leaves_at_once_with_what_was_gathered(benches: list[Bench]) -> None:
    bench = bench_of(benches, MIDDLE)
    bench.attach()
    for value, now in (("a", 1.0), ("b", 1.0003)):
        bench.give(value)
        bench.runner.step(now)
    bench.give_mark()
    bench.runner.step(1.0006)
    assert [bench.receive(), bench.receive()] == [["a"], ["b", (EPOCH, MarkOrder(0))]]


def test_the_buffer_timeout_begins_when_everything_has_left(benches: list[Bench]) -> None:
    bench = bench_of(benches, MIDDLE)
    bench.attach()
    bench.give("a")
    bench.runner.step(0.125)
    bench.give("b")
    bench.give("c")
    bench.runner.step(0.1875)
    bench.runner.step(0.25)
    assert [bench.receive(), bench.receive()] == [["a"], ["b", "c"]]


@pytest.mark.parametrize(("timeout_ms", "blobs"), [(0, [["a"], ["b"]]), (-1, [["a", "b"]])])
def test_a_buffer_timeout_of_zero_sends_at_once_and_a_negative_one_never(
    benches: list[Bench], timeout_ms: int, blobs: list[list[str]]
) -> None:
    bench = bench_of(benches, MIDDLE, buffer_timeout_ms=timeout_ms)
    bench.attach()
    bench.give("a")
    bench.give("b")
    bench.runner.step(1000.0)
    bench.runner.step(1000.0)
    assert [bench.receive() for _blob in blobs] == blobs


def test_a_subtask_whose_output_is_full_gets_no_step_and_the_time_is_told(benches: list[Bench]) -> None:
    bench = bench_of(benches, MIDDLE)
    bench.attach()
    transport = bench.runner.transport
    large = "x" * (5 * MEBIBYTE)  # more than the connection and the queue take
    bench.give(large)
    bench.runner.step(0.0)
    until(lambda: not transport.is_full)  # it is being sent, and nobody reads
    bench.give(large)
    bench.runner.step(1.0)
    bench.give("small")
    assert [bench.runner.step(now) for now in (10.0, 11.0)] == [0.5, 0.5]
    assert bench.receive() == [large]
    until(lambda: not transport.is_full)
    assert bench.runner.step(13.0) == 0.0
    bench.give_mark()
    bench.runner.step(20.0)
    acknowledged = bench.reports.get(0.0)
    assert isinstance(acknowledged, EpochAcknowledged)
    assert acknowledged.ack.blocked_ms == 3_000
    assert [bench.receive(), bench.receive()] == [[large], ["small"]]


def test_a_timer_fires_when_its_time_has_come_and_its_output_leaves_at_once(benches: list[Bench]) -> None:
    bench = bench_of(benches, MIDDLE)
    bench.attach()
    bench.give(1_099)  # fires once the clock has passed it
    bench.runner.step(0.0)
    assert bench.runner.step(0.0) == 0.1
    bench.clock.advance(99)
    assert bench.runner.step(0.5) == 0.001
    bench.clock.advance(1)
    assert bench.runner.step(0.75) == 0.5
    bench.give("after")
    bench.runner.step(1.0)
    assert [bench.receive(), bench.receive(), bench.receive()] == [[1_099], ["alarm 1099"], ["after"]]


def test_timers_that_are_always_due_leave_time_for_records(benches: list[Bench]) -> None:
    bench = bench_of(benches, MIDDLE, buffer_timeout_ms=0)
    bench.attach()
    bench.give(500)  # in the past
    bench.runner.step(0.0)
    bench.runner.step(0.25)
    bench.give(501)
    bench.runner.step(0.25)
    assert bench.runner.step(0.2505) == pytest.approx(0.0005)
    bench.give("between")
    bench.runner.step(0.2505)
    bench.runner.step(0.251)
    sent = [bench.receive() for _blob in range(5)]
    assert sent == [[500], ["alarm 500"], [501], ["between"], ["alarm 501"]]


def test_a_timer_and_a_mark_do_not_wait_for_a_whole_blob_of_a_slow_operator(benches: list[Bench]) -> None:
    bench = bench_of(benches, MIDDLE, buffer_timeout_ms=0)
    bench.attach()
    slow_clock.append(bench.clock)
    bench.give(1_300, *["slow"] * 1_000)
    bench.give_mark()
    out: list[Any] = []
    steps = 0
    while not out or out[-1][0] != EPOCH:
        before = bench.clock.now_ms()
        bench.runner.step(bench.clock.monotonic())
        steps += 1
        assert bench.clock.now_ms() - before <= (256 if steps == 1 else 10), "only the first turn cannot know better"
        while bench.theirs.wait(0.0):
            out += bench.receive()
    assert out.count("slow") == 1_000 and out[0] == 1_300
    assert out.index("alarm 1300") < 320, "the timer fired when its time had come"


def test_a_source_whose_records_take_long_reads_few_at_a_time(benches: list[Bench]) -> None:
    bench = bench_of(benches, SOURCE)
    bench.attach()
    slow_clock.append(bench.clock)
    waiting.extend([[1] * 16, [2] * 10, [3] * 10])
    for _ in range(3):
        bench.runner.step(bench.clock.monotonic())
        bench.clock.advance(100)
    assert reads[1] <= 16, "sixteen records took 16 ms, and a turn has 10"


def test_a_source_of_columns_reads_more_rows_in_a_step_than_a_source_of_rows_reads_records(
    benches: list[Bench],
) -> None:
    asked: list[int] = []

    def numbers(first: int, count: int) -> pa.RecordBatch:
        asked.append(count)
        return pa.record_batch({"n": pa.array(range(first, first + count), pa.int64())})

    row_type = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.BIGINT())])
    bench = bench_of(benches, SOURCE, source=ColumnGeneratorSource(numbers, 1 << 20, row_type))
    bench.attach()
    threading.Thread(target=_receive_all, args=(bench.theirs,), daemon=True).start()
    until(lambda: bench.runner.step(bench.clock.monotonic()) == 0.0 and len(asked) > 5)
    assert asked[:6] == [256, 1024, 4096, 16384, 65536, 65536], "a step takes no time here, and grows up to a bound"


def _receive_all(link: Link) -> None:
    with contextlib.suppress(OSError, EOFError):
        while True:
            link.receive()


@pytest.mark.parametrize("crosses", [True, False])
def test_an_acknowledgement_tells_the_bytes_that_crossed_hosts(benches: list[Bench], crosses: bool) -> None:
    bench = bench_of(benches, MIDDLE)
    blobs = [Blob(bench.exchange, 0, 0, n, dumps([frame])) for n, frame in enumerate([(RECORDS, [-1], None), MARK])]
    if crosses:
        bench.attach_to_another_host()
        for blob in blobs:
            bench.theirs.send(*blob.encode())
    else:
        bench.attach()
        for blob in blobs:
            bench.runner.give(blob)

    acks: list[MarkAck] = []

    def has_acknowledged() -> bool:
        bench.runner.step(bench.clock.monotonic())
        with contextlib.suppress(queue.Empty):
            event = bench.reports.get(0.0)
            acks.extend([event.ack] if isinstance(event, EpochAcknowledged) else [])
        return bool(acks)

    until(has_acknowledged)
    received, sent = sum(blob.size_bytes for blob in blobs), acks[0].bytes_out
    assert sent > 0
    assert acks[0].crossed_bytes == (received + sent if crosses else 0)


@pytest.mark.parametrize("apart", [True, False])
def test_an_acknowledgement_tells_the_bytes_for_subtasks_on_other_hosts(benches: list[Bench], apart: bool) -> None:
    bench = bench_of(benches, SOURCE, parallelism=2, slot_hosts=("10.0.0.1", "10.0.0.2") if apart else ())
    bench.attach()
    bench.runner.give_order(MarkOrder(0))
    bench.runner.step(0.0)
    event = bench.reports.get(0.0)
    assert isinstance(event, EpochAcknowledged)
    sizes = {blob.target: blob.size_bytes for blob in (Blob.decode(bench.theirs.receive()) for _ in range(2))}
    assert event.ack.bytes_out == sum(sizes.values())
    assert event.ack.crossed_bytes == (sizes[1] if apart else 0), "subtask 1 is in the slot of the other host"


def test_watermarks_are_emitted_at_their_interval_and_leave_at_once(benches: list[Bench]) -> None:
    bench = bench_of(benches, SOURCE, watermark_ms=250, buffer_timeout_ms=-1)
    bench.clock.advance(1_000)
    bench.attach()
    for number, now in enumerate((1.0, 1.1875, 1.25, 1.375, 1.5, 1.625)):
        waiting.append([number * 100])
        assert bench.runner.step(now) == pytest.approx(0.004), "then the source is asked again"
    sent = [bench.receive() for _blob in range(8)]
    assert sent == [[0], [100], [(WATERMARK, 99)], [200], [300], [(WATERMARK, 299)], [400], [500]]


def test_a_subtask_with_nothing_to_do_sleeps_until_its_next_watermark(benches: list[Bench]) -> None:
    bench = bench_of(benches, MIDDLE, watermark_ms=250)
    bench.clock.advance(1_000)
    bench.attach()
    assert [bench.runner.step(now) for now in (1.0, 1.125, 1.25, 1.5, 1.625)] == [0.25, 0.125, 0.25, 0.25, 0.125]


def test_a_source_without_a_backlog_is_asked_every_four_milliseconds(benches: list[Bench]) -> None:
    bench = bench_of(benches, SOURCE)
    bench.attach()
    for now in (0.0, 0.004, 0.008):
        asked = len(reads)
        assert bench.runner.step(now) == pytest.approx(0.004)
        assert len(reads) > asked
        asked = len(reads)
        assert bench.runner.step(now + 0.001) == pytest.approx(0.003)
        assert len(reads) == asked, "its time has not come"
        waiting.append([int(now * 1000)])
    assert [bench.receive(), bench.receive()] == [[0], [4]]


def test_a_source_that_is_held_reads_nothing_until_the_next_order(benches: list[Bench]) -> None:
    bench = bench_of(benches, SOURCE)
    bench.attach()
    bench.runner.pause_reading()
    waiting.append([7])
    assert [bench.runner.step(now) for now in (0.0, 1.0)] == [0.5, 0.5]
    assert reads == []
    bench.runner.give_order(MarkOrder(0))
    assert bench.runner.step(2.0) == 0.0
    assert bench.runner.step(3.0) == pytest.approx(0.004), "it was read, and is asked again"
    assert [bench.receive(), bench.receive()] == [[(EPOCH, MarkOrder(0))], [7]]


def test_a_subtask_with_channels_is_neither_held_nor_ordered(benches: list[Bench]) -> None:
    bench = bench_of(benches, MIDDLE)
    bench.attach()
    bench.runner.pause_reading()
    bench.runner.give_order(MarkOrder(0))
    bench.give("a")
    assert [bench.runner.step(now) for now in (0.0, 1.0)] == [0.0, 0.5]
    assert bench.receive() == ["a"]


def fill_output(bench: Bench) -> None:
    """Let a subtask with channels emit more than its connection and its queue take."""
    transport = bench.runner.transport
    for number in range(2):
        until(lambda: not transport.is_full)
        bench.give("x" * (5 * MEBIBYTE))
        bench.runner.step(float(number))
    assert transport.is_full


def test_a_mark_overtakes_though_the_output_is_full(benches: list[Bench]) -> None:
    bench = bench_of(benches, MIDDLE, unaligned=True)
    bench.attach()
    fill_output(bench)
    bench.give("a")
    bench.runner.give_order(MarkOrder(3, overtakes_after_ms=0))
    assert bench.runner.step(5.0) == 0.5
    acknowledged = bench.reports.get(0.0)
    assert isinstance(acknowledged, EpochAcknowledged)
    assert acknowledged.ack.epoch == 3


def test_a_subtask_whose_output_is_full_wakes_when_its_mark_is_to_overtake(benches: list[Bench]) -> None:
    bench = bench_of(benches, MIDDLE, unaligned=True)
    bench.attach()
    fill_output(bench)
    bench.runner.give_order(MarkOrder(3, overtakes_after_ms=120))
    assert bench.runner.step(5.0) == pytest.approx(0.12)
    bench.clock.advance(120)
    bench.runner.step(5.12)
    assert isinstance(bench.reports.get(0.0), EpochAcknowledged)


@pytest.mark.parametrize(("subtask", "waits"), [(MIDDLE, False), (LAST, True)])
def test_a_subtask_that_puts_out_gets_no_step_while_the_driver_takes_no_output(
    benches: list[Bench], subtask: SubtaskId, waits: bool
) -> None:
    bench = bench_of(benches, subtask)
    bench.attach()
    output = OutputLeft(0, OutputPart(0, 0, 1, ["x" * (5 * MEBIBYTE)], []))
    bench.reports.put(output)
    bench.give("a")
    assert bench.runner.step(0.0) == (0.5 if waits else 0.0)
    assert bench.reports.get(0.0) is output
    bench.reports.sent(output)
    assert bench.runner.step(1.0) == (0.0 if waits else 0.5)
