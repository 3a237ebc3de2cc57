"""Programs that changed since their checkpoint: operators added, removed, moved and renamed; state follows the uid."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ekorn.common import Configuration, RestartStrategies, Types, WatermarkStrategy
from ekorn.datastream import CheckpointedFunction, ExternalizedCheckpointRetention, StreamExecutionEnvironment
from ekorn.datastream.functions import KeyedProcessFunction, MapFunction
from ekorn.datastream.state import ListStateDescriptor, ValueStateDescriptor
from ekorn.errors import RestoreError
from ekorn.graph.operator_ids import id_of_uid
from ekorn.operators.undeclared_states import declares_later, undeclared_text
from ekorn.state.snapshots import StateInfo
from ekorn.testing.scripted import Crash, DriverDied, Script, ScriptedSource, run_scripted, start_scripted

LOG = []


def environment(directory, parallelism=1, backend="hashmap"):
    configuration = Configuration()
    configuration.set_string("state.backend.type", backend)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism).set_max_parallelism(8)
    env.enable_checkpointing(10)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(directory))
    env.get_checkpoint_config().set_externalized_checkpoint_retention(
        ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    )
    env.set_restart_strategy(RestartStrategies.no_restart())
    return env


def numbers(env):
    source = ScriptedSource([range(12)], [2])
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG(), 0))

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        yield self.count.value()


class Keep(MapFunction, CheckpointedFunction):
    """Counts in operator state."""

    def initialize_state(self, context):
        LOG.append(context.is_restored())
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("kept", Types.LONG()))
        self.kept = sum(self.state)

    def map(self, value):
        self.kept += 1
        return value

    def snapshot_state(self, context):
        self.state.update([self.kept])


def counted(stream, uid="count"):
    return stream.key_by(lambda n: 0).process(Count()).uid(uid)


def before(env):
    return counted(numbers(env).uid("numbers").map(Keep()).uid("keep"))


@pytest.fixture
def newest(tmp_path):
    """Return a checkpoint after six of the twelve numbers."""
    LOG.clear()
    return interrupted(tmp_path, before)


def interrupted(directory, draw, backend="hashmap"):
    with pytest.raises(DriverDied):
        script = Script(crashes=[Crash("after-epoch", 4)], driver_dies=True)
        start_scripted(draw(environment(directory, backend=backend)), script)
    LOG.clear()
    return str(max(Path(directory).glob("*/chk-*/_metadata"), key=lambda path: int(path.parent.name[4:])).parent)


GOES_ON = [7, 8, 9, 10, 11, 12]


def same(value):
    return value


TAKEN = {
    "nothing": before,
    "operators without state more": lambda env: counted(
        numbers(env).uid("numbers").filter(lambda n: True).map(same).map(Keep()).uid("keep").map(same)
    ),
    "another order": lambda env: counted(numbers(env).uid("numbers").rebalance().map(same).map(Keep()).uid("keep")),
    "in other chains": lambda env: counted(
        numbers(env).uid("numbers").map(same).disable_chaining().map(Keep()).uid("keep").start_new_chain()
    ),
    "other names": lambda env: counted(numbers(env).name("n").uid("numbers").map(Keep()).name("k").uid("keep")).name(
        "c"
    ),
    "found by the hash of its old uid": lambda env: (
        numbers(env)
        .uid("numbers")
        .map(Keep())
        .uid("keep")
        .key_by(lambda n: 0)
        .process(Count())
        .uid("new")
        .set_uid_hash(id_of_uid("count"))
    ),
}


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("change", TAKEN)
def test_state_is_found_by_uid_wherever_the_operator_stands_now(tmp_path, newest, change, parallelism):
    run = run_scripted(TAKEN[change](environment(tmp_path, parallelism)), restore_path=newest)
    assert run.records == GOES_ON
    assert LOG and all(LOG)


REFUSED = {
    "a uid changed": (lambda env: counted(numbers(env).uid("numbers").map(Keep()).uid("keep"), "other"), "'count'"),
    "an operator removed": (lambda env: counted(numbers(env).uid("numbers")), "'keep'"),
    "uids removed": (lambda env: numbers(env).map(Keep()).key_by(lambda n: 0).process(Count()), "'numbers'"),
}


@pytest.mark.parametrize("change", REFUSED)
def test_state_that_would_be_left_behind_is_named_unless_that_is_allowed(tmp_path, newest, change):
    draw, uid = REFUSED[change]
    with pytest.raises(
        RestoreError, match=f"holds state that belongs to no operator of job .*: .*uid {uid}"
    ) as refused:
        start_scripted(draw(environment(tmp_path)), restore_path=newest)
    assert "Give the operators their old uid" in str(refused.value) and "ignore-unclaimed-state" in str(refused.value)
    run = run_scripted(draw(environment(tmp_path)), restore_path=newest, allow_non_restored_state=True)
    expected = {"a uid changed": [1, 2, 3, 4, 5, 6], "an operator removed": GOES_ON, "uids removed": list(range(1, 13))}
    assert run.records == expected[change]


def test_an_operator_that_is_new_starts_empty_and_is_not_restored(tmp_path, newest):
    def draw(env):
        twice = numbers(env).uid("numbers").map(Keep()).uid("keep").map(Keep()).uid("keep too")
        return counted(twice)

    assert run_scripted(draw(environment(tmp_path)), restore_path=newest).records == GOES_ON
    assert sorted(LOG) == [False, True]


def test_a_program_without_uids_goes_on_as_long_as_it_is_the_same(tmp_path):
    def draw(env, *, more=False):
        stream = numbers(env).map(Keep())
        return (stream.map(same) if more else stream).key_by(lambda n: 0).process(Count())

    newest = interrupted(tmp_path, draw)
    assert run_scripted(draw(environment(tmp_path)), restore_path=newest).records == GOES_ON
    with pytest.raises(RestoreError, match="no uid"):
        start_scripted(draw(environment(tmp_path), more=True), restore_path=newest)


def test_a_state_that_is_no_longer_asked_for_stays_until_its_operator_goes(tmp_path, newest):
    class Forgets(KeyedProcessFunction):
        def process_element(self, value, ctx):
            yield "-"

    def draw(env, function):
        return numbers(env).uid("numbers").map(Keep()).uid("keep").key_by(lambda n: 0).process(function).uid("count")

    script = Script(crashes=[Crash("after-epoch", 3)], driver_dies=True)
    with pytest.raises(DriverDied):
        start_scripted(draw(environment(tmp_path / "second"), Forgets()), script, restore_path=newest)
    found = (tmp_path / "second").glob("*/chk-*/_metadata")
    later = str(max(found, key=lambda path: int(path.parent.name[4:])).parent)
    assert run_scripted(draw(environment(tmp_path), Count()), restore_path=later).records[0] == 7


# ------------------------------------------------------------------------------------------- state that was renamed


def hints_about(draw, tmp_path, newest, caplog, *, parallelism=1, backend="hashmap"):
    with caplog.at_level("WARNING", "ekorn.driver.display.operator_hints"):
        run_scripted(draw(environment(tmp_path, parallelism, backend)), restore_path=newest)
    return [r.getMessage() for r in caplog.records if r.name == "ekorn.driver.display.operator_hints"]


class Renamed(KeyedProcessFunction):
    def open(self, runtime_context):
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG(), 0))
        self.count = runtime_context.get_state(ValueStateDescriptor("counts", Types.LONG(), 0))

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        yield self.count.value()


class Late(KeyedProcessFunction):
    """Declares its state with its first record."""

    def open(self, runtime_context):
        self.context = runtime_context
        self.other = runtime_context.get_state(ValueStateDescriptor("other", Types.LONG(), 0))

    def process_element(self, value, ctx):
        count = self.context.get_state(ValueStateDescriptor("count", Types.LONG(), 0))
        count.update(count.value() + 1)
        yield count.value()


def with_function(function):
    return lambda env: (
        numbers(env).uid("numbers").map(Keep()).uid("keep").key_by(lambda n: 0).process(function).uid("count")
    )


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_renamed_state_is_hinted_at_once_with_both_names(tmp_path, newest, caplog, parallelism):
    assert hints_about(with_function(Renamed()), tmp_path, newest, caplog, parallelism=parallelism) == [
        "operator 'KEYED PROCESS': the restored checkpoint holds state 'count', which the program does not declare; it "
        "declares 'counts', 'seen'. Did you rename 'count' to 'counts'? Then 'counts' begins empty. The job keeps what "
        "is not declared: it stays in later checkpoints, and nothing reads it"
    ]


@pytest.mark.parametrize("function", [Renamed(), Count()], ids=["renamed", "declared"])
def test_a_renamed_state_in_rocksdb_is_hinted_at(tmp_path, caplog, function):
    newest = interrupted(tmp_path, before, "rocksdb")
    hints = hints_about(with_function(function), tmp_path, newest, caplog, backend="rocksdb")
    assert ["'count' to 'counts'" in hint for hint in hints] == [True] * isinstance(function, Renamed)


@pytest.mark.parametrize("parallelism", [1, 2], ids=["all records", "a subtask without records"])
@pytest.mark.parametrize("function", [Count(), Late()], ids=["in open", "with the first record"])
def test_a_state_that_is_declared_is_not_hinted_at(tmp_path, newest, caplog, function, parallelism):
    assert hints_about(with_function(function), tmp_path, newest, caplog, parallelism=parallelism) == []


def test_only_a_function_that_declares_state_after_open_is_looked_at_later():
    assert [declares_later([function]) for function in (Count(), Renamed(), Late())] == [False, False, True]


class Operator(NamedTuple):
    """An operator with states, as the hint looks at it."""

    undeclared: tuple[str, ...]
    declared: tuple[str, ...]
    restored: tuple[str, ...]

    def undeclared_states(self):
        return self.undeclared

    def infos(self):
        return [StateInfo(name, "value") for name in (*self.declared, *self.undeclared)]

    def restored_names(self):
        return self.restored


def told_of(operator: Any) -> str | None:
    return undeclared_text(operator)


def test_states_of_the_engine_are_not_hinted_at():
    assert told_of(Operator(("_timers", "window/count"), ("count",), ("count",))) is None


def test_a_state_is_no_new_name_if_it_was_restored_too():
    told = told_of(Operator(("old",), ("count",), ("old", "count")))
    assert told is not None and "it declares 'count'. The job keeps" in told and "rename" not in told


def test_a_state_that_is_declared_neither_in_open_nor_later_is_hinted_at(tmp_path, newest, caplog):
    class Later(KeyedProcessFunction):
        def open(self, runtime_context):
            self.context = runtime_context

        def process_element(self, value, ctx):
            yield self.context.get_state(ValueStateDescriptor("number", Types.LONG(), 0)).value()

    (hint,) = hints_about(with_function(Later()), tmp_path, newest, caplog)
    assert "Did you rename 'count' to 'number'?" in hint


def test_a_state_of_an_operator_without_states_now_is_hinted_at(tmp_path, newest, caplog):
    class Plain(KeyedProcessFunction):
        def process_element(self, value, ctx):
            yield value

    (hint,) = hints_about(with_function(Plain()), tmp_path, newest, caplog)
    assert "holds state 'count', which the program does not declare; it declares no state." in hint


def test_a_renamed_operator_state_is_hinted_at(tmp_path, newest, caplog):
    class KeepElsewhere(MapFunction, CheckpointedFunction):
        def initialize_state(self, context):
            context.get_operator_state_store().get_list_state(ListStateDescriptor("keeps", Types.LONG()))

        def map(self, value):
            return value

        def snapshot_state(self, context):
            pass

    def draw(env):
        return counted(numbers(env).uid("numbers").map(KeepElsewhere()).uid("keep"))

    (hint,) = hints_about(draw, tmp_path, newest, caplog)
    assert "holds state 'kept'" in hint and "Did you rename 'kept' to 'keeps'?" in hint
