"""Output leaves a slot while a subtask is still emitting: a connection that takes no more bytes stops the subtask."""

import pytest

from tamias.clock import SystemClock
from tamias.common import Time, WatermarkStrategy
from tamias.datastream.functions import KeyedProcessFunction, ProcessWindowFunction
from tamias.datastream.window import TumblingEventTimeWindows
from tamias.graph.addresses import SubtaskId
from tamias.operators.epoch import EpochOrder
from tamias.slot.host import SlotHost
from tamias.subtask.wire.frames import Blob
from tests.slot.small_job import deployment, graph

LARGEST_BLOB = 16 << 20


def emitted_bytes(tmp_path, draw, emitting):
    """Run one epoch; return the bytes that vertex `emitting` sent meanwhile, and in all, and in its largest blob."""
    of = graph(draw)
    host = SlotHost(0, SystemClock(), lambda event: None, str(tmp_path / "slot"))
    subtasks = [SubtaskId(vertex.id, 0) for vertex in of.vertices]
    host.deploy(deployment(of), subtasks)
    sent, rest = [], []
    for subtask in subtasks[: emitting + 1]:
        received, sent = sent + rest, []
        rest = [item for item in host.run(subtask, 0, EpochOrder(0), received, sent.append) if isinstance(item, Blob)]
    host.shutdown()
    sizes = [blob.size_bytes for blob in sent + rest]
    return sum(blob.size_bytes for blob in sent), sum(sizes), max(sizes)


def fan_out(env):
    env.from_collection(range(20)).flat_map(lambda v: [(n, b"x" * 500) for n in range(8_000)]).key_by(
        lambda v: v[0]
    ).map(lambda v: v[0]).print()


class Late(KeyedProcessFunction):
    """Emits a kilobyte for every key when its timer fires."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(10)

    def on_timer(self, timestamp, ctx):
        yield b"x" * 1_000


def timers(env):
    numbers = env.from_collection(range(40_000)).assign_timestamps_and_watermarks(stamped())
    numbers.key_by(lambda v: v).process(Late()).key_by(len).map(len).print()


class Large(ProcessWindowFunction):
    """Emits a kilobyte for every key."""

    def process(self, key, context, elements):
        yield b"x" * 1_000


def windows(env):
    numbers = env.from_collection(range(40_000)).assign_timestamps_and_watermarks(stamped())
    windowed = numbers.key_by(lambda v: v).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    windowed.process(Large()).key_by(len).map(len).print()


def stamped():
    return WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, old: 1)


@pytest.mark.parametrize(("draw", "emitting"), [(fan_out, 0), (timers, 1), (windows, 1)])
def test_most_output_leaves_while_a_subtask_emits(tmp_path, draw, emitting):
    streamed, total, largest = emitted_bytes(tmp_path, draw, emitting)
    assert total > 30 << 20
    assert streamed > 0.7 * total
    assert largest <= LARGEST_BLOB
