"""Queries beside a running job see only whole values that were written, and a counter never goes back."""

import threading
import time
from dataclasses import dataclass, replace
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.common import Types, WatermarkStrategy
from ekorn.config.settings.rocksdb_settings import RocksDBSettings
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.functions import KeyedProcessFunction
from ekorn.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from ekorn.driver.submit import submit
from ekorn.errors import StateNotServed, UnknownKey, UnknownQueryableState
from ekorn.testing.continuous_local_engine import ContinuousLocalEngine
from ekorn.testing.drawn_job import drawn_job
from ekorn.testing.local_engine import LocalEngine
from tests.examples_by_profile import examples
from tests.queryable.programs import client_of, environment


def _queryable(descriptor, name):
    descriptor.set_queryable(name)
    return descriptor


ROUNDS = 15
HALF_WAY = -1
COUNT = _queryable(ValueStateDescriptor("count", Types.LONG()), "count")
PAIR = _queryable(MapStateDescriptor("pair"), "pair")
LIST = _queryable(ListStateDescriptor("list", Types.LONG()), "list")


@dataclass(frozen=True)
class Side:
    """A key of a map whose hash is computed in Python: other threads may run while a map takes it in."""

    name: str

    def __hash__(self):
        return hash(self.name)


LEFT, RIGHT = Side("left"), Side("right")


class Writes(KeyedProcessFunction):
    """Counts; writes the count twice into a map; replaces a list by as many elements as the count, up to ten."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(COUNT)
        self.pair = runtime_context.get_map_state(PAIR)
        self.list = runtime_context.get_list_state(LIST)

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(HALF_WAY)
        time.sleep(0)  # lets other threads run while the record is half-way
        self.count.update(count)
        self.pair.put_all({LEFT: count, RIGHT: count})
        self.list.update([count] * (count % 10 + 1))
        return iter(())


class Reader(threading.Thread):
    """Asks for one state of each kind until it has seen enough, and notes what it saw by key."""

    def __init__(self, handle, keys):
        super().__init__()
        self._job, self._keys = handle, keys
        self.counts = {key: [] for key in range(keys)}
        self.pairs, self.lists, self.unexpected = [], [], []

    def run(self):
        with client_of(self._job) as (client, job):
            while len(self.lists) < ROUNDS:
                try:
                    for key, state in enumerate(
                        client.get_kv_states(job, "count", range(self._keys), None, COUNT).result(60)
                    ):
                        if state is not None:
                            self.counts[key].append(state.value())
                    self.pairs.append(dict(client.get_kv_state(job, "pair", 0, None, PAIR).result(60).items()))
                    self.lists.append(list(client.get_kv_state(job, "list", 1, None, LIST).result(60).get()))
                except (UnknownKey, UnknownQueryableState, StateNotServed):
                    continue  # not written yet, or the job begins
                except Exception as error:
                    self.unexpected.append(error)
                    return


@settings(max_examples=examples(6), deadline=None)  # an example is a job of some seconds
@given(
    parallelism=st.integers(1, 3),
    backend=st.sampled_from(["hashmap", "rocksdb", "rocksdb without memory"]),
    engine=st.sampled_from([LocalEngine, ContinuousLocalEngine]),
    per_second=st.sampled_from([1_000, 5_000, 20_000]),
    keys=st.integers(2, 50),
)
def test_readers_beside_a_job_see_only_values_that_were_written(parallelism, backend, engine, per_second, keys):
    env = environment(parallelism)
    source = DataGeneratorSource(lambda n: n, 10**9, RateLimiterStrategy.per_second(per_second))
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    stream.key_by(lambda n: n % keys).process(Writes())
    graph, drawn = drawn_job(env)
    rocksdb = RocksDBSettings(cache_bytes=2000) if "without" in backend else RocksDBSettings()
    chosen = {"state_backend": backend.split()[0], "rocksdb": rocksdb}

    handle = submit(graph, replace(drawn, **chosen), engine_for=lambda settings: partial(engine))
    readers = [Reader(handle, keys) for _ in range(2)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(150)
    handle.cancel()
    handle.results.wait_for_end(60)
    for reader in readers:
        assert not reader.unexpected, repr(reader.unexpected)
        for counts in reader.counts.values():
            assert counts == sorted(counts), "a counter never goes back while the job does not restart"
            assert all(count >= 1 for count in counts)
        assert len(reader.pairs) >= len(reader.lists) == ROUNDS
        assert all(pair[LEFT] == pair[RIGHT] and len(pair) == 2 for pair in reader.pairs), "both or none"
        assert all(found == [found[0]] * (found[0] % 10 + 1) for found in reader.lists), "never half of a list"
