"""A savepoint is restored into a changed program: what is matched, what is refused, and the error messages."""

import pytest

from ekorn.checkpoint.restore_point import resolve
from ekorn.common import Time
from ekorn.datastream.functions import KeyedProcessFunction, MapFunction
from ekorn.datastream.state import ListStateDescriptor, MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from ekorn.errors import JobExecutionError, RestoreError
from ekorn.functions.state.checkpointed import CheckpointedFunction
from ekorn.testing.scripted import Script, run_scripted, start_scripted
from tests.driver.savepoint_programs import EXPECTED, Ask, Count, counting, environment, numbers

REST = EXPECTED[9:]


@pytest.fixture
def savepoint(tmp_path):
    """Return a savepoint of a counting job that was stopped after nine records."""
    ask = Ask(tmp_path / "savepoints", then="stop")
    run_scripted(counting(numbers(environment())), Script(deeds={3: ask}))
    return ask.path


class Restored(MapFunction, CheckpointedFunction):
    """Records whether it was restored."""

    seen = {}

    def __init__(self, name):
        self.name = name

    def initialize_state(self, context):
        Restored.seen[self.name] = context.is_restored()
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("state"))

    def snapshot_state(self, context):
        self.state.update([self.name])

    def map(self, value):
        return value


def test_operators_without_state_come_and_go(savepoint):
    stream = numbers(environment()).map(lambda n: n + 100).filter(lambda n: True).map(lambda n: n - 100)
    assert run_scripted(counting(stream), restore_path=savepoint).records == REST


def test_a_new_operator_starts_empty_and_knows_it(savepoint):
    stream = counting(numbers(environment()).map(Restored("new")).uid("new"))
    assert run_scripted(stream, restore_path=savepoint).records == REST
    assert Restored.seen["new"] is False


def test_an_operator_of_the_savepoint_knows_that_it_was_restored(tmp_path):
    ask = Ask(tmp_path, then="stop")
    run_scripted(numbers(environment()).map(Restored("old")).uid("old"), Script(deeds={2: ask}))
    assert Restored.seen["old"] is False
    run_scripted(numbers(environment()).map(Restored("old")).uid("old"), restore_path=ask.path)
    assert Restored.seen["old"] is True


def test_operators_are_found_by_uid_wherever_they_stand_now(savepoint):
    env = environment()
    env.disable_operator_chaining()
    stream = numbers(env).rebalance().map(lambda n: n).name("in between")
    assert run_scripted(counting(stream).map(lambda r: r).name("behind"), restore_path=savepoint).records == REST


def test_without_uids_an_unchanged_program_finds_its_state(tmp_path):
    def program():
        return numbers(environment(), uid="numbers").key_by(lambda n: n % 2).process(Count())

    ask = Ask(tmp_path, then="stop")
    run_scripted(program(), Script(deeds={3: ask}))
    assert run_scripted(program(), restore_path=ask.path).records == REST


def test_a_uid_hash_takes_the_state_of_an_operator_that_had_no_uid(tmp_path):
    ask = Ask(tmp_path, then="stop")
    run_scripted(numbers(environment()).key_by(lambda n: n % 2).process(Count()), Script(deeds={3: ask}))
    operators = {o.name: o.operator_id for o in resolve(ask.path)[1].operators if o.uid is None and o.has_state}
    (old_id,) = operators.values()
    moved = numbers(environment()).map(lambda n: n).key_by(lambda n: n % 2).process(Count()).set_uid_hash(old_id)
    assert run_scripted(moved, restore_path=ask.path).records == REST


def test_state_of_an_operator_that_is_gone_is_refused_by_id_with_the_way_out(savepoint):
    with pytest.raises(RestoreError) as caught:
        start_scripted(numbers(environment()), restore_path=savepoint)
    gone = next(o.operator_id for o in resolve(savepoint)[1].operators if o.uid == "count")
    assert gone in str(caught.value) and "ignore-unclaimed-state" in str(caught.value)


def test_state_of_an_operator_that_is_gone_may_be_dropped_and_stays_dropped(tmp_path, savepoint):
    ask = Ask(tmp_path / "next", then="stop")
    stream = numbers(environment())
    run_scripted(stream, Script(deeds={1: ask}), restore_path=savepoint, allow_non_restored_state=True)
    assert [o.uid for o in resolve(ask.path)[1].operators if o.has_state] == ["numbers"]


class OtherKind(Count):
    def open(self, runtime_context):
        self.count = runtime_context.get_map_state(MapStateDescriptor("count"))


class OtherTtl(Count):
    def open(self, runtime_context):
        descriptor = ValueStateDescriptor("count")
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self.count = runtime_context.get_state(descriptor)


@pytest.mark.parametrize("function", [OtherKind, OtherTtl])
def test_state_of_another_kind_or_with_a_time_to_live_is_refused_by_name(savepoint, function):
    stream = numbers(environment()).key_by(lambda n: n % 2).process(function()).uid("count")
    run = start_scripted(stream, restore_path=savepoint)
    with pytest.raises(JobExecutionError, match=r"StateMigrationError.*'count'"):
        run.handle.wait(0)


class Two(KeyedProcessFunction):
    """Keeps a second state beside the count, or no longer uses it."""

    def __init__(self, asks):
        self.asks = asks

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.other = runtime_context.get_state(ValueStateDescriptor("other")) if self.asks else None

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        if self.other is not None:
            self.other.update((self.other.value() or 0) + 10)
        yield self.count.value(), None if self.other is None else self.other.value()


def test_a_state_that_is_not_asked_for_any_more_stays_in_later_savepoints(tmp_path):
    def program(asks):
        return numbers(environment()).key_by(lambda n: 0).process(Two(asks)).uid("two")

    first, second = Ask(tmp_path / "one", then="stop"), Ask(tmp_path / "two", then="stop")
    run_scripted(program(True), Script(deeds={1: first}))
    run_scripted(program(False), Script(deeds={1: second}), restore_path=first.path)
    states = {s.name for o in resolve(second.path)[1].operators if o.uid == "two" for s in o.states}
    assert {"count", "other"} <= states
    last = run_scripted(program(True), restore_path=second.path)
    assert last.records[0] == (7, 40)


# ------------------------------------------------------------------------------------------------- max parallelism


def of_at_most(tmp_path, maximum):
    env = environment()
    if maximum is not None:
        env.set_max_parallelism(maximum)
    return env


def test_the_max_parallelism_of_the_savepoint_is_taken_when_the_program_sets_none(tmp_path):
    ask = Ask(tmp_path, then="stop")
    run_scripted(counting(numbers(of_at_most(tmp_path, 5))), Script(deeds={3: ask}))
    again = Ask(tmp_path, then="stop")
    run_scripted(counting(numbers(environment())), Script(deeds={1: again}), restore_path=ask.path)
    assert {o.max_parallelism for o in resolve(again.path)[1].operators if o.uid == "count"} == {5}


def test_another_max_parallelism_is_refused_with_both_numbers(tmp_path):
    ask = Ask(tmp_path, then="stop")
    run_scripted(counting(numbers(of_at_most(tmp_path, 5))), Script(deeds={3: ask}))
    with pytest.raises(RestoreError, match=r"max parallelism 7.*stored with 5"):
        start_scripted(counting(numbers(of_at_most(tmp_path, 7))), restore_path=ask.path)


def test_more_subtasks_than_the_savepoint_has_key_groups_are_refused_with_both_numbers(tmp_path):
    ask = Ask(tmp_path, then="stop")
    run_scripted(counting(numbers(of_at_most(tmp_path, 2))), Script(deeds={3: ask}))
    with pytest.raises(RestoreError, match=r"parallelism 3.*max parallelism 2"):
        start_scripted(counting(numbers(environment(parallelism=3), splits=3)), restore_path=ask.path)
