"""State descriptors: names and types are checked when a descriptor is created."""

import pickle

import pytest

from ekorn.common import Time, Types
from ekorn.common.time import Duration
from ekorn.datastream import OutputTag
from ekorn.datastream.state import (
    AggregatingStateDescriptor,
    FoldingStateDescriptor,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from ekorn.functions.record_functions import AggregateFunction, MapFunction, ReduceFunction


class Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class Add(ReduceFunction):
    def reduce(self, value1, value2):
        return value1 + value2


def test_each_kind_keeps_name_and_type():
    assert ValueStateDescriptor("v", Types.LONG()).type_info == Types.LONG()
    assert ListStateDescriptor("l", Types.INT()).type_info == Types.LIST(Types.INT())
    assert MapStateDescriptor("m", Types.STRING(), Types.INT()).type_info == Types.MAP(Types.STRING(), Types.INT())
    assert ReducingStateDescriptor("r", Add(), Types.INT()).get_reduce_function().reduce(1, 2) == 3
    assert ReducingStateDescriptor("r", lambda a, b: a - b, Types.INT()).get_reduce_function().reduce(5, 2) == 3
    assert AggregatingStateDescriptor("a", Count(), Types.INT()).get_agg_function().create_accumulator() == 0
    folding = FoldingStateDescriptor("f", [], lambda acc, v: [*acc, v])
    assert (folding.initial_value, folding.get_fold_function().fold([1], 2)) == ([], [1, 2])


def test_types_may_be_left_out():
    assert ValueStateDescriptor("v").type_info is None
    assert ListStateDescriptor("l").type_info is None
    assert MapStateDescriptor("m").type_info is None


def test_a_default_value_is_kept_for_the_handle():
    assert ValueStateDescriptor("v", Types.INT(), 7).get_default_value() == 7


@pytest.mark.parametrize("name", ["", None, 5])
def test_a_name_is_a_non_empty_string(name):
    with pytest.raises((TypeError, ValueError), match="ValueStateDescriptor"):
        ValueStateDescriptor(name, Types.INT())


@pytest.mark.parametrize("given", [int, Types.INT, "INT"])
def test_a_type_is_a_type_information(given):
    with pytest.raises(TypeError, match=r"'s'.*Types\.LONG\(\)"):
        ValueStateDescriptor("s", given)
    with pytest.raises(TypeError, match="'s'"):
        MapStateDescriptor("s", Types.INT(), given)


def test_functions_of_states_are_checked():
    with pytest.raises(TypeError, match=r"'r': Add is a class; pass an instance of it: Add\(\)"):
        ReducingStateDescriptor("r", Add, Types.INT())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"'a'.*AggregateFunction"):
        AggregatingStateDescriptor("a", lambda a, b: a, Types.INT())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="ReduceFunction"):
        ReducingStateDescriptor("r", 5, Types.INT())  # type: ignore[arg-type]

    class Plus(MapFunction):
        def map(self, value):
            return value

    with pytest.raises(TypeError, match="ReduceFunction"):
        ReducingStateDescriptor("r", Plus(), Types.INT())  # type: ignore[arg-type]


def test_descriptors_are_equal_by_kind_and_name():
    assert ValueStateDescriptor("s", Types.INT()) == ValueStateDescriptor("s", Types.STRING())
    assert ValueStateDescriptor("s") != ListStateDescriptor("s")
    assert len({ValueStateDescriptor("s"), ValueStateDescriptor("s")}) == 1


def test_a_disabled_time_to_live_is_none():
    descriptor = ValueStateDescriptor("s")
    disabled = StateTtlConfig.new_builder(Time.seconds(1)).set_update_type(StateTtlConfig.UpdateType.Disabled).build()
    descriptor.enable_time_to_live(disabled)
    assert descriptor.ttl_config is None
    with pytest.raises(TypeError, match="StateTtlConfig"):
        descriptor.enable_time_to_live(Time.seconds(1))  # type: ignore[arg-type]


def strategies(cleanup):
    """Return the incremental strategy and that of RocksDB, both of which are set."""
    incremental = cleanup.get_incremental_cleanup_strategy()
    in_rocksdb = cleanup.get_rocksdb_compact_filter_cleanup_strategy()
    assert incremental is not None and in_rocksdb is not None
    return incremental, in_rocksdb


def test_ttl_defaults():
    config = StateTtlConfig.new_builder(Time.minutes(1)).build()
    assert config.get_ttl() == Time.minutes(1)
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnCreateAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.NeverReturnExpired
    assert config.get_ttl_time_characteristic() is StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
    assert config.is_enabled()
    cleanup = config.get_cleanup_strategies()
    assert cleanup.is_cleanup_in_background()
    assert not cleanup.in_full_snapshot()
    incremental, in_rocksdb = strategies(cleanup)
    assert incremental.get_cleanup_size() == 5
    assert in_rocksdb.get_query_time_after_num_entries() == 1000


def test_ttl_builder_keeps_what_it_is_told():
    config = (
        StateTtlConfig.new_builder(Duration.of_seconds(1))
        .update_ttl_on_read_and_write()
        .return_expired_if_not_cleaned_up()
        .use_processing_time()
        .cleanup_full_snapshot()
        .cleanup_incrementally(10, True)
        .cleanup_in_rocksdb_compact_filter(50, Duration.of_days(1))
        .disable_cleanup_in_background()
        .set_ttl(Time.seconds(5))
        .build()
    )
    assert config.get_ttl() == Time.seconds(5)
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
    cleanup = config.get_cleanup_strategies()
    assert cleanup.in_full_snapshot()
    incremental, in_rocksdb = strategies(cleanup)
    assert incremental.run_cleanup_for_every_record()
    assert in_rocksdb.get_periodic_compaction_time() == Duration.of_days(1)
    assert pickle.loads(pickle.dumps(config)).get_ttl() == Time.seconds(5)


def test_without_background_cleanup_nothing_is_cleaned_by_default():
    cleanup = (
        StateTtlConfig.new_builder(Time.seconds(1)).disable_cleanup_in_background().build().get_cleanup_strategies()
    )
    assert cleanup.get_incremental_cleanup_strategy() is None
    assert cleanup.get_rocksdb_compact_filter_cleanup_strategy() is None


def test_a_time_to_live_is_positive():
    with pytest.raises(ValueError, match="above 0 ms"):
        StateTtlConfig.new_builder(Time.milliseconds(0))


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda b: b.set_update_type("OnReadAndWrite"), r"UpdateType\.OnReadAndWrite, got 'OnReadAndWrite'"),
        (lambda b: b.set_state_visibility(0), r"takes one of StateTtlConfig\.StateVisibility\.ReturnExpired"),
        (lambda b: b.set_ttl_time_characteristic("EventTime"), r"Characteristic\.ProcessingTime, got 'EventTime'"),
        (lambda b: b.cleanup_incrementally(0, True), "size of at least 1, got 0"),
        (lambda b: b.cleanup_incrementally(1.5, True), "whole number, got 1.5"),
        (lambda b: b.cleanup_in_rocksdb_compact_filter(-1), "number of entries of at least 0, got -1"),
        (lambda b: b.cleanup_in_rocksdb_compact_filter(1, Duration.of_millis(-1)), "at least 0 ms"),
        (lambda b: b.set_ttl(Time.seconds(-1)), "above 0 ms"),
    ],
)
def test_an_invalid_ttl_setting_is_refused_by_its_call(call, why):
    with pytest.raises((TypeError, ValueError), match=why):
        call(StateTtlConfig.new_builder(Time.seconds(1)))


def test_the_periodic_compaction_time_may_be_any_length_of_time():
    config = StateTtlConfig.new_builder(Time.seconds(1)).cleanup_in_rocksdb_compact_filter(9, Time.seconds(3)).build()
    strategy = config.get_cleanup_strategies().get_rocksdb_compact_filter_cleanup_strategy()
    assert strategy is not None
    assert strategy.get_periodic_compaction_time() == Duration.of_seconds(3)


def test_map_state_works_like_a_dict():
    methods = dict.fromkeys(MapState.__abstractmethods__, None)
    held = {}
    methods |= {
        "get": lambda self, key: held.get(key),
        "put": lambda self, key, value: held.__setitem__(key, value),
        "remove": lambda self, key: held.pop(key, None),
        "contains": lambda self, key: key in held,
        "keys": lambda self: held.keys(),
    }
    state = type("InDict", (MapState,), methods)()
    state["a"] = 1
    assert state["a"] == 1
    assert "a" in state
    assert list(state) == ["a"]
    del state["a"]
    assert state["a"] is None


def test_output_tags_are_their_ids():
    assert OutputTag("late") == OutputTag("late", Types.INT()) != OutputTag("early")
    assert len({OutputTag("late"), OutputTag("late")}) == 1
    assert pickle.loads(pickle.dumps(OutputTag("late", Types.INT()))).type_info == Types.INT()
    assert OutputTag("rows", [Types.INT(), Types.STRING()]).type_info == Types.ROW([Types.INT(), Types.STRING()])
    assert repr(OutputTag("late")) == "OutputTag('late')"


@pytest.mark.parametrize(("tag_id", "type_info"), [("", None), (None, None), ("x", int), ("x", [int])])
def test_output_tags_are_checked(tag_id, type_info):
    with pytest.raises((TypeError, ValueError), match="OutputTag"):
        OutputTag(tag_id, type_info)
