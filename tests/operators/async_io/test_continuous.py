"""Asynchronous I/O where jobs run continuously: what comes before new records, and who waits for a slow service."""

import itertools
import socket

import pytest

from ekorn.clock import SystemClock
from ekorn.common import Time, WatermarkStrategy
from ekorn.datastream import AsyncDataStream
from ekorn.datastream.connectors.datagen import DataGeneratorSource
from ekorn.graph.addresses import SubtaskId
from ekorn.links.link import Link
from ekorn.operators.mark import MarkOrder
from ekorn.slot.continuous.mailbox import Mailbox
from ekorn.slot.continuous.subtask_runner import SubtaskRunner
from ekorn.slot.event_reports import Reports
from ekorn.slot.host import SlotHost
from ekorn.slot.user_code_lock import UserCodeLock
from ekorn.slot_protocol.deployment import Deployment
from ekorn.slot_protocol.task_messages import Carries
from ekorn.subtask.wire.frames import END, RECORDS, Blob
from ekorn.testing.continuous_process_engine import continuous_process_engine
from ekorn.testing.local_slots import InProcessSlots
from ekorn.types.by_value import dumps
from tests.live_jobs import Tracks, comes_to_rest, until
from tests.operators.async_io.services import Ask, Service, allowed
from tests.operators.windows.local_run import Run, environment, graph_of
from tests.slot import small_job


def test_requests_in_flight_are_repeated_before_the_first_record_and_before_the_end(tmp_path):
    service = Service(gate=allowed)
    numbers = environment(checkpoints=True).from_collection([1, 2]).rebalance()
    run = Run(graph_of(AsyncDataStream.ordered_wait(numbers, Ask(service), Time.seconds(60))), directory=str(tmp_path))
    run.deploy()
    run.step(1)
    until(lambda: service.asked == [1])
    plan = run.checkpoint(1, max_records=0)
    run.engine.shutdown()
    service.asked.clear()

    clock, asking = SystemClock(), SubtaskId(1, 0)
    host = SlotHost(0, clock, lambda event: None)
    deployment = Deployment("0" * 32, run.graph, 1, restore=plan, continuous=True)
    host.deploy(deployment, [asking])
    runner = SubtaskRunner(host, asking, deployment, Mailbox(host, UserCodeLock(), clock, Reports()))
    ours, theirs = socket.socketpair()
    assert runner.attach(Link(ours), Carries.BOTH)
    (exchange,) = run.graph.inputs_of(run.graph.vertices[asking.vertex].id)
    runner.give(Blob(exchange.id, 0, 0, 0, dumps([(RECORDS, [2], None), (END, False)])))
    runner.step(clock.monotonic())
    until(lambda: 2 in service.asked)
    assert service.asked == [1, 2]
    service.allow(1, 2)
    runner.leave(in_order=False)
    host.shutdown()
    theirs.close()


class Slot:
    """A slot of an engine in this process, with a job of two pipelines: one asks a service, the other notes numbers."""

    def __init__(self, service, tmp_path, *, chained=False, **asking):
        self.noted = Tracks(tmp_path / "noted")
        noted = self.noted

        def draw(env):
            env.get_config().set_auto_watermark_interval(0)
            numbers = env.from_collection(list(range(20)))
            numbers = numbers if chained else numbers.key_by(lambda n: 0).map(lambda n: n)
            AsyncDataStream.ordered_wait(numbers, Ask(service), Time.seconds(600), **asking).print("answer")
            others = env.from_source(DataGeneratorSource(noted, 1 << 60), WatermarkStrategy.no_watermarks(), "others")
            others.key_by(lambda n: 0).filter(lambda n: False).print()

        self.graph = small_job.graph(draw)
        self.engine = continuous_process_engine(self.graph, pool=InProcessSlots(1))
        assert self.engine.deploy(small_job.deployment(self.graph)) is None

    def epochs(self):
        for number in itertools.count():
            result = self.engine.run_epoch(MarkOrder(number))
            assert result.failure is None
            yield result.acks


@pytest.fixture
def slots(tmp_path):
    made = []

    def make(service, **how):
        made.append(Slot(service, tmp_path, **how))
        return made[0]

    yield make
    made[0].engine.shutdown()


@pytest.mark.parametrize("chained", [True, False], ids=["behind its source", "behind an exchange"])
def test_a_slow_service_delays_no_other_subtask_of_the_slot(slots, chained):
    service = Service(gate=allowed)
    slot = slots(service, chained=chained, capacity=2)
    until(lambda: len(service.asked) == 2)  # the third record finds no place
    before = slot.noted.count
    until(lambda: slot.noted.count > before + 9_000)  # several polls: the thread does not wait
    assert service.asked == [0, 1], "no more requests at a time than the capacity allows"
    service.allow(*range(20))
    lines = []
    for acks in slot.epochs():
        lines += [line for ack in acks for line in ack.lines]
        if len(lines) == 20:
            break
    assert lines == [f"answer> {n}" for n in range(20)]
    assert service.most == 2


@pytest.mark.parametrize("chained", [True, False], ids=["behind its source", "behind an exchange"])
def test_a_slow_service_stops_the_source_of_its_records(tmp_path, chained):
    service, read = Service(gate=allowed), Tracks(tmp_path / "read")

    def draw(env):
        source = DataGeneratorSource(lambda n: read((n, bytes(20_000))), 1 << 60)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        numbers = numbers if chained else numbers.key_by(lambda n: 0).map(lambda n: n)
        AsyncDataStream.ordered_wait(numbers, Ask(service), Time.seconds(600), 2).filter(lambda n: False).print()

    graph = small_job.graph(draw)
    engine = continuous_process_engine(graph, pool=InProcessSlots(1))
    assert engine.deploy(small_job.deployment(graph)) is None
    until(lambda: len(service.asked) == 2)
    until(lambda: comes_to_rest(read))
    assert read.count < 5_000, "the queues between two subtasks hold some megabytes"
    engine.shutdown()


def test_the_time_for_which_records_wait_for_a_service_counts_as_busy(slots):
    service = Service(gate=allowed)
    slot = slots(service, capacity=1)
    until(lambda: service.asked == [0])
    before = slot.noted.count
    until(lambda: slot.noted.count > before + 9_000)
    service.allow(*range(20))
    busy_ms, lines = dict.fromkeys(range(len(slot.graph.vertices)), 0.0), []
    for acks in slot.epochs():
        for ack in acks:
            busy_ms[ack.vertex] += ack.busy_ms
            lines += ack.lines
        if len(lines) == 20:
            break
    asking = next(v.id for v in slot.graph.vertices if "Async" in v.name or "async" in v.name)
    first = next(v.id for v in slot.graph.vertices if v.is_source)
    assert busy_ms[asking] > busy_ms[first], "the records wait for it, and not for their source"
