"""Jobs on RocksDB: crashes, files shared between checkpoints, and that nothing is left on disk when a job ends."""

import os
import tempfile
from pathlib import Path

import pytest

from ekorn.checkpoint.file_names import created_for
from ekorn.checkpoint.metadata_file import decode_metadata
from ekorn.common import Configuration, RestartStrategies, WatermarkStrategy
from ekorn.datastream import EmbeddedRocksDBStateBackend, ExternalizedCheckpointRetention, StreamExecutionEnvironment
from ekorn.errors import JobCancelledError
from ekorn.functions.process_functions import KeyedProcessFunction
from ekorn.functions.state.state_descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from ekorn.testing.scripted import Crash, Script, ScriptedSource, run_scripted

RECORDS = [(f"key-{(n * 7919) % 400}", n) for n in range(6000)]
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a file system in memory, if the machine has one


class Remember(KeyedProcessFunction):
    """Keeps for each key the number of records, the last record and the number per kind; a timer emits them."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.last = runtime_context.get_list_state(ListStateDescriptor("last"))
        self.kinds = runtime_context.get_map_state(MapStateDescriptor("kinds"))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        self.last.add(value[1])
        if self.count.value() % 5 == 0:
            self.last.update(list(self.last.get())[-3:])
        kind = value[1] % 3
        self.kinds.put(kind, (self.kinds.get(kind) or 0) + 1)
        ctx.timer_service().register_event_time_timer(10)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), self.count.value(), list(self.last.get()), sorted(self.kinds.items())


@pytest.fixture
def checkpoints():
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


@pytest.fixture
def scratch():
    folder = tempfile.mkdtemp(dir=MEMORY)
    yield folder
    assert os.listdir(folder) == [], "what a job had on local disk is gone when it has ended"
    os.rmdir(folder)


def environment(scratch, checkpoints, *, cramped, incremental=True):
    configuration = Configuration()
    configuration.set_string("state.backend.rocksdb.writebuffer.size", "256kb")
    configuration.set_string("ekorn.state.rocksdb.cache-size", "64kb" if cramped else "64mb")
    configuration.set_string("execution.checkpointing.data-inline-threshold", "0")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    backend = EmbeddedRocksDBStateBackend(incremental)
    backend.set_db_storage_paths(scratch)
    env.set_state_backend(backend)
    env.enable_checkpointing(10)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(10, 0))
    config = env.get_checkpoint_config()
    config.set_checkpoint_storage_dir(checkpoints)
    config.set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)
    return env


def remembered(env):
    source = ScriptedSource([RECORDS[::2], RECORDS[1::2]], runs=[400])
    records = env.from_source(source, WatermarkStrategy.no_watermarks(), "records")
    return records.key_by(lambda record: record[0]).process(Remember())


def expected():
    found = {}
    for key, number in sorted(RECORDS, key=lambda record: (record[1] % 2, record[1])):
        found.setdefault(key, []).append(number)
    return {key: (len(numbers), sorted({n % 3: 0 for n in numbers})) for key, numbers in found.items()}


def shown(records):
    """Return the part of the results that does not depend on the order in which two sources are read."""
    return {key: (count, [kind for kind, _ in kinds]) for key, count, _, kinds in records}


@pytest.mark.parametrize(("cramped", "incremental"), [(True, True), (False, True), (True, False)])
@pytest.mark.parametrize(
    "crashes",
    [(), (Crash("in-epoch", 3), Crash("before-notify", 4), Crash("after-notify", 6))],
    ids=["undisturbed", "three crashes"],
)
def test_a_job_gives_the_same_whatever_happens_to_it(scratch, checkpoints, crashes, cramped, incremental):
    env = environment(scratch, checkpoints, cramped=cramped, incremental=incremental)
    run = run_scripted(remembered(env), Script(crashes=crashes, kill=False))
    assert run.handle.progress().restarts == len(crashes)
    assert shown(run.records) == expected()
    assert len(run.records) == 400
    assert all(len(last) <= 7 for _, _, last, _ in run.records)


class Remind(KeyedProcessFunction):
    """Registers two timers with every number; the first to fire deletes the second of every third number."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value + 1_500)
        ctx.timer_service().register_event_time_timer(value + 3_000)

    def on_timer(self, timestamp, ctx):
        number = ctx.get_current_key()
        if number % 3 == 0:
            ctx.timer_service().delete_event_time_timer(number + 3_000)
        yield number, timestamp


@pytest.mark.parametrize("incremental", [True, False])
def test_timers_that_are_on_disk_only_fire_once_each_whatever_happens(scratch, checkpoints, incremental):
    env = environment(scratch, checkpoints, cramped=True, incremental=incremental)
    watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda number, _: number)
    numbers = env.from_source(ScriptedSource([list(range(4_000))], runs=[200]), watermarks, "numbers")
    crashes = (Crash("in-epoch", 8), Crash("before-notify", 9), Crash("after-notify", 14))
    stream = numbers.key_by(lambda number: number).process(Remind())
    run = run_scripted(stream, Script(crashes=crashes, kill=False))
    assert run.handle.progress().restarts == len(crashes)
    first, second = [(n, n + 1_500) for n in range(4_000)], [(n, n + 3_000) for n in range(4_000) if n % 3 != 0]
    assert sorted(run.records) == sorted(first + second)


def metadata_in(job):
    newest = max(job.glob("chk-*/_metadata"), key=lambda path: int(path.parent.name[4:]))
    return decode_metadata(newest.read_bytes(), str(newest))


def test_after_a_crash_checkpoints_go_on_from_the_files_there_are(scratch, checkpoints):
    """A checkpoint after the crash refers to files from before it, and every shared file is referred to."""
    env = environment(scratch, checkpoints, cramped=False)
    seen = []

    def look(handle):
        (job,) = checkpoints.iterdir()
        seen.append({path.name for path in Path(job, "shared").iterdir()})

    deeds = dict.fromkeys(range(1, 30), look)
    run_scripted(remembered(env), Script(crashes=(Crash("after-epoch", 5),), kill=False, deeds=deeds))
    attempts = [{name.split("-a")[1].split("-")[0] for name in names} for names in seen if names]
    assert any(len(of) > 1 for of in attempts), "files of both attempts are in use together"
    assert len(seen[-1]) < 40


def test_a_retained_checkpoint_names_its_files_and_no_others_are_left(scratch, checkpoints):
    env = environment(scratch, checkpoints, cramped=False)
    with pytest.raises(JobCancelledError):
        run_scripted(remembered(env), Script(deeds={6: lambda handle: handle.cancel()}, kill=False))
    (job,) = checkpoints.iterdir()
    metadata = metadata_in(job)
    shared = {f"shared/{path.name}" for path in (job / "shared").iterdir()}
    in_flight = {path for path in shared if created_for(path) > metadata.checkpoint_id}  # at the cancellation
    assert shared - in_flight == {path for path in metadata.paths() if path.startswith("shared/")}
    keyed = [s.keyed for o in metadata.operators for s in o.subtasks if s is not None and s.keyed is not None]
    assert {part.format for part in keyed} == {"rocksdb"}
    assert all("CURRENT" in part.names and "heap" not in part.names for part in keyed)  # timers are in RocksDB
