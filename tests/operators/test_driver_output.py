"""Printed lines and collected records leave a slot in parts, and reach the driver in their order."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ekorn.clock import SystemClock
from ekorn.common import Configuration
from ekorn.datastream import DataStream, StreamExecutionEnvironment
from ekorn.engine.subtask_outcome import add_output
from ekorn.graph.addresses import SubtaskId
from ekorn.operators.epoch import Ack, EpochOrder, OutputPart
from ekorn.operators.sinks.collected_run import CollectedRun
from ekorn.slot.host import SlotHost
from ekorn.subtask.outbox import Emitted
from ekorn.testing.drawn_job import drawn_job
from ekorn.testing.local_run import collect_locally, on_local_engine
from ekorn.types.by_value import dumps
from tests.slot.small_job import deployment

MANY = 40_000
PART_BYTES = 1 << 20


def environment() -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("ekorn.exchange.blob-size", f"{PART_BYTES} b")
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)


def lines(env: StreamExecutionEnvironment) -> DataStream:
    """Draw a stream whose only record becomes forty thousand lines of a kilobyte."""
    return env.from_collection([1]).flat_map(lambda v: (f"{n:01000d}" for n in range(MANY)))


@pytest.mark.parametrize("sink", ["print", "collect"])
def test_output_of_one_record_leaves_in_parts_before_the_acknowledgement(tmp_path: Path, sink: str) -> None:
    env = environment()
    stream = lines(env)
    if sink == "print":
        stream.print()
    graph, _ = drawn_job(env if sink == "print" else stream)
    host = SlotHost(0, SystemClock(), lambda event: None, str(tmp_path / "slot"))
    host.deploy(deployment(graph), [SubtaskId(0, 0)])
    sent: list[Emitted] = []
    *rest, ack = host.run(SubtaskId(0, 0), 0, EpochOrder(0), [], sent.append)
    host.shutdown()
    sizes = [len(dumps(part)) for part in (*sent, *rest)]
    assert sum(sizes) > 0.9 * MANY * 1_000
    assert max(sizes) <= 2 * PART_BYTES
    assert isinstance(ack, Ack)
    assert len(dumps(ack)) <= 2 * PART_BYTES
    assert ack.output_bytes >= MANY * 1_000
    assert len(sent) > 0.9 * len(sizes), "the others had not left when the subtask had emitted all"


def test_collected_records_come_whole_and_in_order() -> None:
    assert collect_locally(lines(environment())) == [f"{n:01000d}" for n in range(MANY)]


def test_printed_lines_come_whole_and_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    env = environment()
    lines(env).print()
    with on_local_engine():
        env.execute()
    assert capsys.readouterr().out.splitlines() == [f"{n:01000d}" for n in range(MANY)]


def test_parts_that_spark_has_shuffled_are_put_in_order() -> None:
    acks = [Ack(vertex, 0, epoch=3) for vertex in (1, 2)]
    acks[0].lines = ["4"]
    runs = [CollectedRun(str(number).encode(), 1) for number in range(4)]
    parts = [OutputPart(1, 0, number, [str(number)], [runs[number]]) for number in range(4)]
    random.Random(5).shuffle(parts)
    add_output(acks, parts)
    assert acks[0].lines == ["0", "1", "2", "3", "4"]
    assert acks[0].collected == runs
    assert acks[1].lines == []
