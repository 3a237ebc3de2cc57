"""Jobs restored from a checkpoint of an older version with other types, classes or windows."""

import sys
from pathlib import Path

import pytest

from ekorn.common import Configuration, Duration, RestartStrategies, Row, Time, Types, WatermarkStrategy
from ekorn.common.watermark_strategy import TimestampAssigner
from ekorn.datastream import ExternalizedCheckpointRetention, StreamExecutionEnvironment
from ekorn.datastream.functions import KeyedProcessFunction, MapFunction, WindowFunction
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.datastream.window import (
    EventTimeSessionWindows,
    EventTimeTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from ekorn.errors import JobExecutionError
from ekorn.testing.scripted import Crash, DriverDied, Script, ScriptedSource, run_scripted, start_scripted
from tests.state.evolving import MODULE, program

BACKENDS = [("hashmap", "hashmap"), ("rocksdb", "rocksdb"), ("hashmap", "rocksdb"), ("rocksdb", "hashmap")]
RECORDS = [(key, n) for n in range(6) for key in "ab"]


@pytest.fixture(autouse=True)
def no_program_stays_behind():
    yield
    sys.modules.pop(MODULE, None)


def environment(directory, parallelism=1):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.set_parallelism(parallelism).set_max_parallelism(8)
    env.enable_checkpointing(10)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(directory))
    env.get_checkpoint_config().set_externalized_checkpoint_retention(
        ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    )
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 0))
    return env


def source(env, records=RECORDS, epochs=4):
    runs = [len(records) // epochs]
    return env.from_source(ScriptedSource([records], runs), WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")


def interrupted(directory, draw, epochs=2, **settings):
    """Run a job until its driver dies; return its newest checkpoint."""
    with pytest.raises(DriverDied):
        script = Script(crashes=[Crash("after-epoch", epochs + 1)], driver_dies=True)
        start_scripted(draw(environment(directory)), script, **settings)
    return str(max(directory.glob("*/chk-*/_metadata"), key=lambda path: int(path.parent.name[4:])).parent)


class Remember(KeyedProcessFunction):
    """Add to the row of a key, whatever fields the row has."""

    def __init__(self, names, types):
        self.names, self.types = names, types

    def open(self, runtime_context):
        self.state = runtime_context.get_state(ValueStateDescriptor("seen", Types.ROW_NAMED(self.names, self.types)))

    def process_element(self, value, ctx):
        row = self.state.value() or Row(**dict.fromkeys(self.names))
        row["count"] = (row["count"] or 0) + 1
        self.state.update(row)
        yield ctx.get_current_key(), str(row)


@pytest.mark.parametrize(
    ("parallelism", "backends"), [(1, BACKENDS[0]), (3, BACKENDS[0]), (3, BACKENDS[1]), (3, BACKENDS[2])]
)
def test_a_job_goes_on_with_more_fields_in_its_state(tmp_path, parallelism, backends):
    def draw(env, names, types):
        return source(env).key_by(lambda r: r[0]).process(Remember(names, types)).uid("remember")

    newest = interrupted(tmp_path, lambda env: draw(env, ["count"], [Types.INT()]), state_backend=backends[0])
    stream = draw(environment(tmp_path, parallelism), ["note", "count"], [Types.STRING(), Types.DOUBLE()])
    script = Script(crashes=[Crash("after-epoch", 2)])
    run = run_scripted(stream, script, restore_path=newest, state_backend=backends[1])
    expected = [f"Row(note=None, count={n})" for n in (4.0, 5.0, 6.0)]
    assert [text for key, text in run.records if key == "a"] == expected
    assert [text for key, text in run.records if key == "b"] == expected


def test_a_refused_change_names_the_operator_the_state_and_the_difference_and_is_not_retried(tmp_path):
    def draw(env, kind):
        function = Remember(["count"], [kind])
        return source(env).key_by(lambda r: r[0]).process(function).name("Remember").uid("remember")

    newest = interrupted(tmp_path, lambda env: draw(env, Types.LONG()))
    run = start_scripted(draw(environment(tmp_path), Types.STRING()), restore_path=newest)
    with pytest.raises(JobExecutionError) as failed:
        run.handle.wait(0)
    assert "cannot restore state 'seen' of operator 'Remember' (uid 'remember'" in str(failed.value)
    assert "count: was LONG and is STRING" in str(failed.value)
    assert run.handle.progress().restarts == 0


def test_keys_of_another_type_are_refused(tmp_path):
    def draw(env, key, key_type):
        function = Remember(["count"], [Types.LONG()])
        return source(env).key_by(key, key_type=key_type).process(function).uid("remember")

    newest = interrupted(tmp_path, lambda env: draw(env, lambda r: r[0], Types.STRING()))
    run = start_scripted(draw(environment(tmp_path), lambda r: r[1], Types.LONG()), restore_path=newest)
    with pytest.raises(JobExecutionError, match="the type of the key was STRING and is LONG; it cannot change"):
        run.handle.wait(0)
    assert run.handle.progress().restarts == 0


OLD = "@dataclass\nclass Hit:\n    user: str\n    at: int\n"
NEW = "@dataclass\nclass Hit:\n    at: int\n    user: str\n    weight: int = field(default_factory=lambda: 10)\n"


class At(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value.at


class Weights(WindowFunction):
    def apply(self, key, window, inputs):
        yield [(hit.at, getattr(hit, "weight", None)) for hit in inputs]


def windows(env, assigner, way):
    """Count the hits of users in windows whose contents are hits."""
    module = sys.modules[MODULE]
    hits = source(env, [("u", n) for n in range(8)]).map(lambda r: module.Hit(user=r[0], at=r[1])).uid("hits")
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(100)).with_timestamp_assigner(At())
    keyed = hits.assign_timestamps_and_watermarks(strategy).uid("times").key_by(lambda hit: hit.user)
    windowed = keyed.window(assigner)
    made = windowed.reduce(lambda a, b: b) if way == "reduce" else windowed.apply(Weights())
    return made.uid("window").map(str)


@pytest.mark.parametrize(("way", "backends"), [*(("apply", pair) for pair in BACKENDS), ("reduce", BACKENDS[0])])
@pytest.mark.parametrize(
    "assigner",
    [
        TumblingEventTimeWindows.of(Time.milliseconds(50)),
        SlidingEventTimeWindows.of(Time.milliseconds(100), Time.milliseconds(50)),
        EventTimeSessionWindows.with_gap(Time.milliseconds(20)),
    ],
    ids=["tumbling", "sliding", "sessions"],
)
def test_what_windows_keep_changes_with_its_class(tmp_path, assigner, way, backends):
    program(OLD)
    newest = interrupted(tmp_path, lambda env: windows(env, assigner, way), state_backend=backends[0])
    program(NEW)
    stream = windows(environment(tmp_path), assigner, way)
    run = run_scripted(stream, restore_path=newest, state_backend=backends[1])
    run.records[:] = dict.fromkeys(run.records)  # sliding windows emit every record twice
    if way == "apply":
        assert run.records == [str([(n, 10) for n in range(8)])]
    else:
        assert run.records == ["Hit(at=7, user='u', weight=10)"]


@pytest.mark.parametrize("way", ["apply", "reduce", "general"])
@pytest.mark.parametrize("backends", BACKENDS, ids="-".join)
def test_rows_that_windows_keep_change_with_their_declared_type(tmp_path, way, backends):
    def draw(env, names, types):
        kind = Types.ROW_NAMED(names, types)
        hits = source(env, [("u", n) for n in range(8)]).map(AsRow(names), kind).uid("hits")
        strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(At())
        keyed = hits.assign_timestamps_and_watermarks(strategy).uid("times").key_by(lambda row: "all")
        windowed = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(50)))
        if way == "general":
            windowed = windowed.trigger(PurgingTrigger.of(EventTimeTrigger()))
        made = windowed.reduce(lambda a, b: a) if way == "reduce" else windowed.apply(Everything())
        return made.uid("window").map(str)

    old, new = (["at", "gone"], [Types.INT()] * 2), (["note", "at"], [Types.STRING(), Types.LONG()])
    newest = interrupted(tmp_path, lambda env: draw(env, *old), state_backend=backends[0])
    run = run_scripted(draw(environment(tmp_path), *new), restore_path=newest, state_backend=backends[1])
    (found,) = run.records
    assert "gone" not in found and "at=0" in found
    assert found.count("note=None") == (1 if way == "reduce" else 8)


class AsRow(MapFunction):
    def __init__(self, names):
        self.names = names

    def map(self, value):
        return Row(**{name: {"at": value[1], "gone": 7}.get(name) for name in self.names})


class Everything(WindowFunction):
    def apply(self, key, window, inputs):
        yield list(inputs)


def test_what_a_reduce_keeps_changes_with_its_class(tmp_path):
    def draw(env):
        module = sys.modules[MODULE]
        hits = source(env).map(lambda r: module.Hit(user=r[0], at=1)).uid("hits")
        summed = hits.key_by(lambda h: h.user).reduce(lambda a, b: module.Hit(user=a.user, at=a.at + b.at))
        return summed.uid("sum").map(str)

    program(OLD)
    newest = interrupted(tmp_path, draw)
    program(NEW)
    run = run_scripted(draw(environment(tmp_path)), restore_path=newest)
    assert run.records[-1] == "Hit(at=6, user='b', weight=10)"
    assert Path(newest, "_metadata").exists()
