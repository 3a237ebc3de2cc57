"""The records of a key reach the subtask that owns the key's group, whoever sends them and after every rescaling."""

import pytest

from ekorn.common import WatermarkStrategy
from ekorn.datastream import KeyedProcessFunction
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.keygroups import key_group, key_group_range
from ekorn.testing.scripted import Script, ScriptedSource, run_scripted, split_evenly
from tests.live_jobs import environment

MAXIMUM = 16
KEYS = [f"word {n}" for n in range(20)] + [(n, "pair") for n in range(10)] + list(range(10))
RECORDS = [(key, turn) for turn in range(6) for key in KEYS]


class WhereAndHowMany(KeyedProcessFunction):
    """Yields the key, the subtask that has it, and how many records the key has had."""

    def open(self, runtime_context):
        self.index = runtime_context.get_index_of_this_subtask()
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value[0], self.index, count


def job(directory, parallelism, backend="hashmap"):
    env = environment(directory, parallelism=parallelism, state__backend__type=backend)
    env.set_max_parallelism(MAXIMUM)
    source = ScriptedSource(split_evenly(RECORDS, 3), [10])
    records = env.from_source(source, WatermarkStrategy.no_watermarks(), "records").uid("records")
    return records.key_by(lambda record: record[0]).process(WhereAndHowMany()).uid("where")


def owner(key, parallelism):
    group = key_group(key, MAXIMUM)
    ranges = [key_group_range(MAXIMUM, parallelism, index) for index in range(parallelism)]
    (found,) = [index for index, (first, last) in enumerate(ranges) if first <= group <= last]
    return found


@pytest.mark.parametrize("parallelism", [1, 2, 5, 16])
def test_every_record_reaches_the_owner_of_its_key_group(parallelism, tmp_path):
    found = run_scripted(job(tmp_path, parallelism)).records
    assert {(key, index) for key, index, _ in found} == {(key, owner(key, parallelism)) for key in KEYS}
    assert sorted(map(repr, found)) == sorted(repr((k, owner(k, parallelism), n)) for k in KEYS for n in range(1, 7))


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_after_rescaling_records_reach_the_new_owner_and_find_the_state_there(backend, tmp_path):
    found, path = [], None
    for life, parallelism in enumerate((2, 5, 3)):
        asked = []

        def stop(handle, asked=asked):
            asked.append(handle.request_savepoint(str(tmp_path / "savepoints"), then="stop"))

        settings = {} if path is None else {"restore_path": path}
        script = Script(deeds={2: stop} if life < 2 else {})
        run = run_scripted(job(tmp_path / str(life), parallelism, backend), script, **settings)
        assert run.records, "every life reads records"
        assert all(index == owner(key, parallelism) for key, index, _ in run.records)
        found += run.records
        path = asked[0].result(0) if asked else None
    assert sorted(repr((key, n)) for key, _, n in found) == sorted(repr((key, n)) for key in KEYS for n in range(1, 7))
