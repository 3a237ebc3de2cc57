"""Asynchronous I/O where jobs run continuously: requests of the restored checkpoint come before new records."""

import socket

from tamias.clock import SystemClock
from tamias.common import Time
from tamias.datastream import AsyncDataStream
from tamias.graph.addresses import SubtaskId
from tamias.slot.deployment import Deployment
from tamias.slot.event_reports import Reports
from tamias.slot.host import SlotHost
from tamias.slot.link import Link
from tamias.slot.mailbox import Desk, Mailbox
from tamias.slot.turn import Turn
from tamias.subtask.wire.frames import END, RECORDS, Blob
from tamias.types.by_value import dumps
from tests.live_jobs import until
from tests.operators.async_io.services import Ask, Service, allowed
from tests.operators.windows.local_run import Run, environment, graph_of


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
    desk = Desk(Mailbox(host, Turn(), clock, Reports()), host, asking, deployment)
    ours, theirs = socket.socketpair()
    desk.attach(Link(ours))
    (exchange,) = run.graph.inputs_of(run.graph.vertices[asking.vertex].id)
    desk.give_blob(Blob(exchange.id, 0, 0, 0, dumps([(RECORDS, [2], None), (END, False)])))
    desk.step(clock.monotonic())
    until(lambda: 2 in service.asked)
    assert service.asked == [1, 2]
    service.allow(1, 2)
    desk.leave(in_order=False)
    host.shutdown()
    theirs.close()
