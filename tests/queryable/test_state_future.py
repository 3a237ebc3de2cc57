"""The futures of queries: everything that a future of `concurrent.futures` does, with fewer objects."""

import asyncio
import gc
import threading
import weakref
from concurrent.futures import FIRST_COMPLETED, Future, InvalidStateError, as_completed, wait

import pytest

from ekorn.queryable.state_future import StateFuture
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
    assert per_future < 2, "a plain future has ten"


def test_a_future_has_what_the_standard_library_expects_of_one():
    assert not [name for name in vars(Future()) if not hasattr(StateFuture(), name)]


def test_an_error_that_was_raised_leaves_no_cycle_to_the_collector():
    gc.collect()
    gc.disable()
    try:
        future = StateFuture()
        future.set_exception(ValueError("no"))
        with pytest.raises(ValueError, match="no"):
            future.result()
        left = weakref.ref(future)
        del future
        assert left() is None
    finally:
        gc.enable()


def test_a_future_wakes_those_that_wait_for_it():
    future, found = StateFuture(), []
    waiting = [threading.Thread(target=lambda: found.append(future.result(300)), daemon=True) for _ in range(2)]
    for thread in waiting:
        thread.start()
    until(lambda: future._finished is not None and len(future._finished._waiters) == 2)  # type: ignore[attr-defined]
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
    future.set_result(1)
    assert future.done() and not future.running() and not future.cancelled() and "returned int" in repr(future)


def test_a_result_is_set_once():
    future = StateFuture()
    future.set_result(1)
    with pytest.raises(InvalidStateError, match="StateFuture"):
        future.set_result(2)


def test_callbacks_are_called_in_their_order_and_one_that_fails_holds_up_no_other(caplog):
    future: StateFuture[str] = StateFuture()
    called: list[object] = []
    future.add_done_callback(lambda _: called.append(1))
    future.add_done_callback(lambda _: 1 // 0)
    future.add_done_callback(lambda done: called.append(done.result()))
    future.set_result("x")
    future.add_done_callback(lambda _: called.append("late"))
    assert called == [1, "x", "late"] and "ZeroDivisionError" in caplog.text


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
