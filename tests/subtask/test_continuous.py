"""A subtask that runs continuously: what it does with blobs, marks and the clock, one step at a time."""

from __future__ import annotations

import pytest

from ekorn.errors import DeploymentError, SlotLostError, SpoolError
from ekorn.operators.mark import MarkOrder
from ekorn.subtask.wire.frames import EPOCH, WATERMARK, Blob
from ekorn.types.by_value import dumps
from tests.subtask.bench import Bench, records


def test_a_record_leaves_at_once_and_a_timer_when_it_is_due() -> None:
    bench = Bench()
    bench.give(0, records(1))
    assert bench.run() == [1]
    assert bench.subtask.next_timer_ms() == 1_101
    bench.clock.advance(101)
    bench.subtask.advance_clock()
    bench.subtask.flush()
    assert bench.services.take_sent() == ["alarm"]
    bench.host.shutdown()


def test_records_behind_a_mark_wait_until_the_mark_has_come_on_every_channel() -> None:
    bench, order = Bench(), MarkOrder(7)
    bench.give(0, records(1), (EPOCH, order))
    bench.give(0, records(2))
    bench.give(1, records(3))
    assert bench.run() == [1, 3]
    assert len(bench.services.held) == 1 and not bench.services.acks
    bench.clock.advance(30)
    bench.give(1, records(4), (EPOCH, order))
    bench.give(1, records(5))
    assert bench.run() == [4, (EPOCH, order), 2, 5]
    (ack,) = bench.services.acks
    assert (ack.epoch, ack.records_in, ack.deferred_blobs) == (7, 3, 1)
    assert ack.aligned_ms == pytest.approx(30)
    assert bench.services.taken_blobs == 5, "a blob that waited is taken from its queue once"
    bench.host.shutdown()


def test_watermarks_of_a_channel_that_is_ahead_wait_too() -> None:
    bench, order = Bench(), MarkOrder(0)
    bench.give(0, (WATERMARK, 10), (EPOCH, order))
    bench.give(0, (WATERMARK, 50))
    bench.give(1, (WATERMARK, 20), (EPOCH, order))
    assert bench.run() == [(WATERMARK, 10), (EPOCH, order), (WATERMARK, 20)]
    bench.host.shutdown()


def test_a_lost_blob_is_noticed() -> None:
    bench = Bench()
    bench.give(0, records(1))
    bench.run()
    bench.subtask.give(Blob(bench.exchange, 0, 0, 2, dumps([records(3)])))
    with pytest.raises(DeploymentError, match=r"blob 2 .* instead of blob 1"):
        bench.run()
    bench.host.shutdown()


def test_an_error_of_the_slot_is_not_blamed_on_an_operator() -> None:
    bench, order = Bench(), MarkOrder(0, checkpoint_id=1)
    bench.services.defer_error = SpoolError(10, 0, "no space left on device")
    bench.give(0, (EPOCH, order))
    bench.give(0, records(1))
    with pytest.raises(SpoolError, match="no space left"):
        bench.run()
    bench.services.capture_error = SlotLostError(0, "it was not told where savepoint 1 goes")
    bench.give(1, (EPOCH, order))
    with pytest.raises(SlotLostError, match="not told where"):
        bench.run()
    bench.host.shutdown()


def test_nothing_happens_behind_the_mark_of_a_savepoint_that_the_job_stops_with() -> None:
    bench, stop, next_one = Bench(), MarkOrder(0, checkpoint_id=1, suspends=True), MarkOrder(1)
    bench.give(0, records(1))
    for sender in (0, 1):
        bench.give(sender, (EPOCH, stop))
    assert bench.run() == [1, (EPOCH, stop)]
    bench.clock.advance(10_000)
    assert bench.subtask.next_timer_ms() is None
    bench.subtask.advance_clock()
    bench.subtask.emit_periodic_watermarks()
    bench.subtask.flush()
    assert bench.services.take_sent() == [], "the timer is in the savepoint: it fires in the job that continues from it"
    for sender in (0, 1):  # the savepoint could not be taken, and the job goes on
        bench.give(sender, (EPOCH, next_one))
    assert bench.run() == ["alarm", (EPOCH, next_one)]


def test_blobs_are_small_because_spark_bounds_what_is_on_its_way_by_their_number() -> None:
    bench = Bench()
    bench.give(0, records(*(bytes(300_000) for _ in range(40))))
    assert len(bench.run()) == 40
    assert max(bench.services.sizes) < 3 << 20
