"""The futures of queries: everything that a future of `concurrent.futures` does, with fewer objects."""

import asyncio
import gc
import threading
from concurrent.futures import FIRST_COMPLETED, Future, InvalidStateError, as_completed, wait

import pytest

from tamias.queryable.state_future import StateFuture
from tests.live_jobs import until


def test_a_future_has_few_objects_for_the_collector_to_count():
    gc.collect()
    gc.disable()
    try:
        before = gc.get_count()[0]
        kept = [StateFuture() for _ in range(100)]
        per_future = (gc.get_count()[0] - before) / len(kept)
    finally:
        gc.enable()
    assert per_future < 6, "a plain future has ten"


def test_a_future_wakes_those_that_wait_for_it():
    future, found = StateFuture(), []
    waiting = [threading.Thread(target=lambda: found.append(future.result(300)), daemon=True) for _ in range(2)]
    for thread in waiting:
        thread.start()
    late = future._condition
    until(lambda: late._condition is not None and len(late._condition._waiters) == 2)
    future.set_result(7)
    for thread in waiting:
        thread.join(30)
    assert found == [7, 7] and future.result() == 7 and future.exception() is None


def test_a_future_without_a_result_times_out_and_can_still_get_one():
    future = StateFuture()
    with pytest.raises(TimeoutError):
        future.result(0.0)
    with pytest.raises(TimeoutError):
        future.exception(0.001)
    future.set_exception(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        future.result(30)


def test_a_future_is_running_and_is_not_cancelled():
    future = StateFuture()
    assert future.running() and not future.cancel() and not future.done() and "running" in repr(future)


def test_a_result_is_set_once():
    future = StateFuture()
    future.set_result(1)
    with pytest.raises(InvalidStateError, match="StateFuture"):
        future.set_result(2)


def test_the_functions_of_the_standard_library_wait_for_such_futures_and_plain_ones():
    futures = [StateFuture(), Future(), StateFuture()]
    done: list[Future] = []
    futures[2].add_done_callback(done.append)
    threading.Thread(target=lambda: futures[2].set_result(2), daemon=True).start()
    assert wait(futures, 30, FIRST_COMPLETED).done == {futures[2]}
    futures[0].set_result(0)
    futures[1].set_result(1)
    assert sorted(each.result() for each in as_completed(futures, 30)) == [0, 1, 2]
    assert done == [futures[2]]


def test_a_future_can_be_awaited():
    async def awaited(future):
        threading.Thread(target=lambda: future.set_result("here"), daemon=True).start()
        return await asyncio.wrap_future(future)

    assert asyncio.run(awaited(StateFuture())) == "here"
