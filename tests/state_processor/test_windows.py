"""The windows of a savepoint are read: of every layout, with evictors, and with the state of triggers and functions."""

import pytest

from ekorn.common import Types
from ekorn.datastream.state import ReducingStateDescriptor
from ekorn.datastream.window import CountEvictor, GlobalWindows
from ekorn.errors import JobExecutionError
from ekorn.state_processor import SavepointReader, WindowReaderFunction
from ekorn.state_processor.reading.stored_savepoint import open_savepoint
from ekorn.testing import collect_locally
from tests.state_processor.programs import COUNT, KEYS, Average, Larger, savepoint_of
from tests.state_processor.savepoint_functions import env
from tests.state_processor.window_programs import (
    COUNTED,
    OVERLAPPING,
    SESSIONS,
    SLIDING,
    TUMBLING,
    counted_process,
    evicted_reduce,
    session_process,
    sliced_process,
    sliding_aggregate,
    tumbling_reduce,
)

BACKENDS = pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])


class ReadWindow(WindowReaderFunction):
    def read_window(self, key, context, elements):
        window = context.window()
        yield key, window.start, window.end, sorted(elements), sorted(context.registered_event_time_timers())


def seen_by(program, tmp_path, backend):
    """Return the records that a program had processed before the savepoint, and its path."""
    path = savepoint_of(program, tmp_path, backend=backend, after=8)
    ((_, _, position, _),) = collect_locally(SavepointReader.read(env(1), path).read_list_state("numbers", "_splits"))
    assert 0 < position < COUNT, "the job was not over"
    return path, list(range(position))


def of(seen, key, start, end):
    return [n for n in seen if n % KEYS == key and start <= n < end]


@BACKENDS
def test_reduced_windows_are_read(tmp_path, backend):
    path, seen = seen_by(tumbling_reduce, tmp_path, backend)
    reader = SavepointReader.read(env(), path).window(TUMBLING)
    found = collect_locally(reader.reduce("windows", Larger(), ReadWindow(), reduce_type=Types.LONG()))
    assert len(found) == len({(key, start) for key, start, *_ in found}) >= KEYS
    for key, start, end, elements, timers in found:
        assert end == start + 20 and elements == [max(of(seen, key, start, end))] and timers == [end - 1]


@BACKENDS
def test_aggregated_sliding_windows_are_read(tmp_path, backend):
    path, seen = seen_by(sliding_aggregate, tmp_path, backend)
    reader = SavepointReader.read(env(), path).window(SLIDING)
    found = collect_locally(reader.aggregate("windows", Average(), ReadWindow()))
    assert len(found) > 3 * KEYS
    for key, start, end, elements, _ in found:
        expected = of(seen, key, start, end)
        assert end == start + 20 and elements == [sum(expected) / len(expected)]


@BACKENDS
def test_sliding_windows_that_are_kept_in_slices_are_read(tmp_path, backend):
    path, seen = seen_by(sliced_process, tmp_path, backend)
    kinds = {info.kind for info in open_savepoint(path).operator("windows").keyed_states}
    assert ("window-slices" in kinds) is (backend == "hashmap"), "the heap keeps slices"
    reader = SavepointReader.read(env(), path).window(OVERLAPPING)
    found = collect_locally(reader.process("windows", ReadWindow(), state_type=Types.LONG()))
    assert {key for key, *_ in found} == set(range(KEYS)) and len(found) > 20 * KEYS
    for key, start, end, elements, _ in found:
        assert end == start + 40 and elements == of(seen, key, start, end) != []


@BACKENDS
def test_the_records_of_sessions_are_read(tmp_path, backend):
    path, seen = seen_by(session_process, tmp_path, backend)
    reader = SavepointReader.read(env(), path).window(SESSIONS)
    found = collect_locally(reader.process("windows", ReadWindow(), state_type=Types.LONG()))
    assert sorted(n for *_, elements, _ in found for n in elements) == seen
    for key, start, end, elements, _ in found:
        assert (start, end) == (elements[0], elements[-1] + 6) and elements == of(seen, key, start, end)


@BACKENDS
def test_the_state_of_triggers_and_of_window_functions_is_read(tmp_path, backend):
    class ReadCounts(WindowReaderFunction):
        def read_window(self, key, context, elements):
            count = context.trigger_state(ReducingStateDescriptor("count", lambda a, b: a + b)).get()
            fired = [store.get_state(COUNTED).value() for store in (context.window_state(), context.global_state())]
            yield key, sorted(elements), count, fired

    path, seen = seen_by(counted_process, tmp_path, backend)
    reader = SavepointReader.read(env(), path).window(GlobalWindows.create())
    found = collect_locally(reader.process("windows", ReadCounts(), state_type=Types.LONG()))
    assert sorted(key for key, *_ in found) == list(range(KEYS))
    for key, elements, count, fired in found:
        expected = of(seen, key, 0, 40)
        assert elements == expected and (count or 0) == len(expected) % 2 and fired == [len(expected) // 2] * 2


@BACKENDS
def test_windows_with_an_evictor_are_read_and_nothing_is_evicted(tmp_path, backend):
    path, seen = seen_by(evicted_reduce, tmp_path, backend)
    reader = SavepointReader.read(env(), path).window(TUMBLING).evictor(CountEvictor.of(2))
    found = collect_locally(reader.process("windows", ReadWindow(), state_type=Types.LONG()))
    assert sorted(n for *_, elements, _ in found for n in elements) == seen
    reduced = collect_locally(reader.reduce("windows", Larger(), ReadWindow(), reduce_type=Types.LONG()))
    assert [elements for *_, elements, _ in reduced] == [[max(elements)] for *_, elements, _ in found]


def test_windows_of_another_assigner_are_refused(tmp_path):
    path = savepoint_of(session_process, tmp_path)
    reader = SavepointReader.read(env(), path).window(TUMBLING)
    with pytest.raises(JobExecutionError, match="session windows with their default trigger"):
        collect_locally(reader.process("windows", ReadWindow()))
