"""Streams: the operator, the type and the errors of every method."""

import json
import pickle
import threading
from functools import partial

import pytest

from ekorn.common import Types, WatermarkStrategy
from ekorn.datastream import (
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    OutputTag,
    Partitioner,
    ProcessFunction,
    ReduceFunction,
    SinkFunction,
    StreamExecutionEnvironment,
)
from ekorn.datastream.connectors.base import StreamTransformer, SupportsPreprocessing
from ekorn.errors import InvalidProgramError, UnsupportedOperationError
from ekorn.functions.sink_contract import Sink
from ekorn.functions.state.checkpointed import CheckpointedFunction, ListCheckpointed
from ekorn.graph.specs import (
    CollectSpec,
    Custom,
    FoldSpec,
    Hash,
    KeySpec,
    PrintSpec,
    ProjectSpec,
    ReduceSpec,
    TimestampsSpec,
    WithStateSpec,
    WriterSpec,
)
from ekorn.testing.drawn_job import drawn_job
from tests.program.drawn_operators import operator_of

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
LOCK = threading.Lock()


class Double(MapFunction):
    def map(self, value):
        return value * 2


class Keep(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


class Pass(ProcessFunction):
    def process_element(self, value, ctx):
        yield value


class Drop(SinkFunction):
    def invoke(self, value, context):
        pass


@pytest.fixture
def env():
    return StreamExecutionEnvironment()


@pytest.fixture
def pairs(env):
    return env.from_collection([("a", 1)], PAIR)


@pytest.fixture
def keyed(pairs):
    return pairs.key_by(lambda r: r[0], Types.STRING())


@pytest.fixture
def operator(env):
    return partial(operator_of, env)


# ------------------------------------------------------------------------------------------- types


def test_types_are_declared_or_follow_from_the_input(pairs, keyed):
    pickled = Types.PICKLED_BYTE_ARRAY()
    assert pairs.get_type() == PAIR
    assert pairs.map(str).get_type() == pickled
    assert pairs.map(str, Types.STRING()).get_type() == Types.STRING()
    assert pairs.filter(bool).get_type() == PAIR
    assert pairs.project(1).get_type() == Types.TUPLE([Types.INT()])
    assert pairs.rebalance().get_type() == PAIR
    assert pairs.union(pairs).get_type() == PAIR
    assert pairs.assign_timestamps_and_watermarks(WatermarkStrategy.no_watermarks()).get_type() == PAIR
    assert pairs.process(Pass()).get_side_output(OutputTag("t", Types.INT())).get_type() == Types.INT()
    assert keyed.sum(1).get_type() == PAIR
    assert keyed.reduce(lambda a, b: a).get_type() == PAIR
    assert keyed.filter_with_state(lambda v, s: (True, s)).get_type() == PAIR
    assert keyed.fold(0, lambda a, v: a, Types.INT()).get_type() == Types.INT()
    assert keyed.map_with_state(lambda v, s: (v, s)).get_type() == pickled


def test_a_keyed_stream_is_a_row_of_key_and_value(pairs, keyed):
    assert str(keyed.get_type()) == "RowTypeInfo(f0: String, f1: TupleTypeInfo(String, Integer))"
    assert str(pairs.key_by(0).get_type()).startswith("RowTypeInfo(f0: Pickled")


@pytest.mark.parametrize("given", [int, Types.INT, "INT"])
def test_an_output_type_is_a_type(pairs, given):
    with pytest.raises(TypeError, match="output_type of Map"):
        pairs.map(str, given)
    with pytest.raises(TypeError, match="key_type of key_by"):
        pairs.key_by(lambda r: r[0], given)


def test_an_array_is_no_key(pairs):
    for key_type in (Types.PRIMITIVE_ARRAY(Types.INT()), Types.TUPLE([Types.OBJECT_ARRAY(Types.STRING())])):
        with pytest.raises(InvalidProgramError, match="cannot be the type of a key"):
            pairs.key_by(lambda r: r[0], key_type)


# ------------------------------------------------------------------------------------------- what is drawn


def test_names_by_default(pairs, keyed):
    assert pairs.get_name() == "Collection Source"
    assert [
        s.get_name() for s in (pairs.map(str), pairs.flat_map(list), pairs.filter(bool), pairs.process(Pass()))
    ] == [
        "Map",
        "FlatMap",
        "Filter",
        "PROCESS",
    ]
    assert keyed.process(Keep()).get_name() == "KEYED PROCESS"
    assert {s.get_name() for s in (keyed.sum(1), keyed.min(1), keyed.max_by(1), keyed.reduce(max))} == {"Reduce"}
    assert pairs.map(str).name("mine").get_name() == "mine"


def test_rolling_aggregates_are_reduce_functions(keyed, operator):
    for stream, text in (
        (keyed.sum(1), "sum(1)"),
        (keyed.min(), "min(0)"),
        (keyed.max("f1"), "max('f1')"),
        (keyed.min_by(1), "min_by(1)"),
        (keyed.max_by(1, first=False), "max_by(1)"),
    ):
        found = operator(stream)
        assert isinstance(found.spec, ReduceSpec)
        assert repr(found.spec.function) == text
        assert found.key is not None


def test_folds_and_state_shortcuts(keyed, operator):
    assert operator(keyed.fold([], lambda acc, v: [*acc, v])).spec.initial == []
    assert isinstance(operator(keyed.fold(0, lambda acc, v: acc)).spec, FoldSpec)
    for stream, form in (
        (keyed.map_with_state(lambda v, s: (v, s)), "map"),
        (keyed.flat_map_with_state(lambda v, s: ([v], s)), "flat_map"),
        (keyed.filter_with_state(lambda v, s: (True, s)), "filter"),
    ):
        spec = operator(stream).spec
        assert isinstance(spec, WithStateSpec)
        assert spec.form == form


@pytest.mark.parametrize("given", [0, "f0", [0], ("f0",), [0, "f1"]])
def test_keys_by_field(env, pairs, given):
    pairs.key_by(given).map(str)
    (exchange,) = env.job_graph().exchanges
    assert isinstance(exchange.partitioning, Hash)
    assert len(exchange.partitioning.key.selector.get_key(("a", 1))) == (2 if given == [0, "f1"] else 1)


def test_key_by_on_a_keyed_stream_keys_the_original(env, pairs, keyed):
    keyed.key_by(1).map(str)
    graph = env.job_graph()
    (exchange,) = graph.exchanges
    assert [o.name for o in graph.vertices[exchange.source].operators] == [f"Source: {pairs.get_name()}"]
    assert exchange.partitioning.key.selector.get_key(("a", 7)) == (7,)


def test_projection_and_timestamps(pairs, operator):
    assert operator(pairs.project(1, 0, 1)).spec == ProjectSpec((1, 0, 1))
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    assert operator(pairs.assign_timestamps_and_watermarks(strategy)).spec == TimestampsSpec(strategy)


def test_sequences_and_text_files(env, tmp_path):
    numbers = env.set_parallelism(2).from_sequence(1, 10)
    assert (numbers.get_name(), numbers.get_type()) == ("Sequence Source", Types.LONG())
    (tmp_path / "lines.txt").write_text("a\nb\n")
    lines = env.read_text_file(str(tmp_path / "lines.txt"))
    assert lines.get_type() == Types.STRING()
    numbers.map(str).print()
    lines.print()
    assert {v.parallelism for v in env.job_graph().vertices} == {2}


def test_partition_custom_takes_classes_and_fields(env, pairs):
    class ByLength(Partitioner):
        def partition(self, key, num_partitions):
            return len(key) % num_partitions

    pairs.partition_custom(ByLength(), 0).map(str)
    (exchange,) = env.job_graph().exchanges
    assert isinstance(exchange.partitioning, Custom)
    assert exchange.partitioning.key.selector.get_key(("abc", 1)) == "abc"


def test_behind_a_custom_partitioning_stands_an_operator_once_it_is_tuned(env, pairs):
    pairs.partition_custom(lambda key, n: 0, 0).set_parallelism(3).name("spread").map(str)
    nodes = json.loads(env.get_execution_plan())["nodes"]
    assert [(n["type"], n["parallelism"]) for n in nodes[1:]] == [("spread", 3), ("Map", 1)]
    assert nodes[1]["predecessors"][0]["ship_strategy"] == "CUSTOM"


def test_a_keyed_process_function_may_run_without_keys(pairs, operator):
    assert operator(pairs.process(Keep())).key is None


def test_print_on_a_keyed_stream_drops_the_identifier(pairs, keyed, operator):
    assert operator(pairs.print("id")).spec == PrintSpec("id")
    assert operator(keyed.print("id")).spec == PrintSpec(None)
    with pytest.raises(TypeError, match="string"):
        pairs.print(5)


def test_a_collected_keyed_stream_carries_its_key(env, pairs):
    def first(pair):
        return pair[0]

    graph = drawn_job(pairs.key_by(first, Types.STRING())).graph
    assert graph.vertices[-1].operators[-1].spec == CollectSpec(KeySpec(first, Types.STRING()))
    graph = drawn_job(env.from_collection([("a", 1)], PAIR)).graph
    assert graph.vertices[-1].operators[-1].spec == CollectSpec()


def test_sinks_can_be_named_and_tuned(env, pairs):
    pairs.add_sink(Drop()).name("out").uid("u").set_parallelism(2).set_description("d").slot_sharing_group("g")
    (plan,) = [n for n in json.loads(env.get_execution_plan())["nodes"] if n["pact"] == "Data Sink"]
    assert (plan["type"], plan["contents"], plan["parallelism"]) == ("Sink: out", "d", 2)


def test_a_sink_may_prepare_its_stream(env, pairs):
    class Rows(StreamTransformer):
        def apply(self, ds):
            return ds.map(list).name("prepared")

    class Prepared(Sink, SupportsPreprocessing):
        def create_writer(self, context, restored):
            raise AssertionError

        def get_transformer(self):
            return Rows()

    pairs.sink_to(Prepared())
    (vertex,) = env.job_graph().vertices
    *_, before, made = vertex.operators
    assert isinstance(made.spec, WriterSpec)
    assert before.name == "prepared"


def test_the_environment_is_reached_from_a_stream(env, pairs):
    assert pairs.get_execution_environment() is env
    assert pairs.get_execution_config() is env.get_config()


# ------------------------------------------------------------------------------------------- refused on views


CALLS = {
    "name": lambda s: s.name("n"),
    "get_name": lambda s: s.get_name(),
    "uid": lambda s: s.uid("u"),
    "set_uid_hash": lambda s: s.set_uid_hash("0" * 32),
    "set_parallelism": lambda s: s.set_parallelism(1),
    "set_max_parallelism": lambda s: s.set_max_parallelism(1),
    "set_description": lambda s: s.set_description("d"),
    "force_non_parallel": lambda s: s.force_non_parallel(),
    "set_buffer_timeout": lambda s: s.set_buffer_timeout(1),
    "start_new_chain": lambda s: s.start_new_chain(),
    "disable_chaining": lambda s: s.disable_chaining(),
    "slot_sharing_group": lambda s: s.slot_sharing_group("g"),
}
PARTITIONINGS = {
    "forward": lambda s: s.forward(),
    "rebalance": lambda s: s.rebalance(),
    "rescale": lambda s: s.rescale(),
    "shuffle": lambda s: s.shuffle(),
    "broadcast": lambda s: s.broadcast(),
    "global_": lambda s: s.global_(),
    "partition_custom": lambda s: s.partition_custom(lambda key, n: 0, lambda r: r),
}


@pytest.mark.parametrize("call", CALLS)
def test_settings_of_an_operator_are_refused_where_there_is_none(pairs, keyed, call):
    with pytest.raises(UnsupportedOperationError, match=rf"{call}\(\) needs an operator, and key_by has none"):
        CALLS[call](keyed)
    for view, word in (
        (pairs.rebalance(), "rebalance"),
        (pairs.union(pairs), "union"),
        (pairs.process(Pass()).get_side_output(OutputTag("t")), "side output"),
    ):
        with pytest.raises(InvalidProgramError, match=rf"{call}\(\) needs an operator.*{word}"):
            CALLS[call](view)


@pytest.mark.parametrize("call", PARTITIONINGS)
def test_a_keyed_stream_is_not_partitioned_otherwise(keyed, call):
    with pytest.raises(UnsupportedOperationError, match=rf"{call}\(\) on a keyed stream"):
        PARTITIONINGS[call](keyed)


def test_a_side_output_is_read_from_the_operator(pairs, keyed):
    for stream in (pairs.rebalance(), keyed, pairs.process(Pass()).get_side_output(OutputTag("a"))):
        with pytest.raises(InvalidProgramError, match="get_side_output"):
            stream.get_side_output(OutputTag("t"))
    with pytest.raises(TypeError, match="OutputTag"):
        pairs.process(Pass()).get_side_output("t")


def test_unions_need_streams_of_one_type_and_environment(env, pairs):
    for other in (env.from_collection([1], Types.INT()), env.from_collection([1])):
        with pytest.raises(InvalidProgramError, match="one type"):
            pairs.union(other)
    with pytest.raises(InvalidProgramError, match="same environment"):
        pairs.union(StreamExecutionEnvironment().from_collection([("a", 1)], PAIR))
    with pytest.raises(TypeError, match="needs streams"):
        pairs.union([1])


def test_projections_are_checked_against_the_type(env, pairs):
    with pytest.raises(IndexError, match="has 2 fields"):
        pairs.project(2)
    for positions in ((), (-1,), ("a",)):
        with pytest.raises(ValueError, match="project"):
            pairs.project(*positions)
    for stream in (env.from_collection([(1, 2)]), env.from_collection([1], Types.INT())):
        with pytest.raises(TypeError, match="tuples or rows"):
            stream.project(0)


@pytest.mark.parametrize("group", ["", None, 5])
def test_a_slot_group_has_a_name(pairs, group):
    with pytest.raises(TypeError, match="slot-sharing group"):
        pairs.map(str).slot_sharing_group(group)


# ------------------------------------------------------------------------------------------- functions are checked


class Plus(ReduceFunction):
    def reduce(self, value1, value2):
        return value1


class ByName(KeySelector):
    def get_key(self, value):
        return value[0]


class Some(FilterFunction):
    def filter(self, value):
        return True


class All(FlatMapFunction):
    def flat_map(self, value):
        return [value]


@pytest.mark.parametrize(
    ("call", "function"),
    [
        ("map", Double()),
        ("map", str),
        ("map", len),
        ("map", lambda x, extra=1: x),
        ("map", lambda *args: args),
        ("filter", Some()),
        ("filter", None.__eq__),
        ("flat_map", All()),
        ("flat_map", lambda x: (yield x)),
        ("key_by", ByName()),
        ("process", Pass()),
        ("add_sink", Drop()),
    ],
)
def test_functions_and_callables_of_the_right_kind(pairs, call, function):
    getattr(pairs, call)(function)


@pytest.mark.parametrize(
    ("call", "function", "words"),
    [
        ("map", Double, r"map\(\): Double is a class; pass an instance of it: Double\(\.\.\.\)"),
        ("map", Some(), r"map\(\) needs a MapFunction, got Some, a FilterFunction"),
        ("map", 42, r"map\(\) needs a MapFunction or a callable of 1 argument, got 42"),
        (
            "map",
            lambda: 1,
            r"map\(\) calls its function with 1 argument, and <lambda> \(test_streams.py:\d+\) takes \(\)",
        ),
        ("map", lambda a, b: a, r"takes \(a, b\)"),
        ("filter", Double(), r"filter\(\) needs a FilterFunction, got Double, a MapFunction"),
        ("flat_map", Double(), "needs a FlatMapFunction"),
        ("key_by", Double(), "needs a KeySelector"),
        ("key_by", 1.5, "needs a KeySelector"),
        ("process", Double(), r"process\(\) needs a ProcessFunction, got Double, a MapFunction"),
        ("process", lambda value, ctx: None, "needs a ProcessFunction"),
        ("add_sink", print, "needs a SinkFunction"),
        ("sink_to", Drop(), r"sink_to\(\) needs a Sink, got Drop, a SinkFunction"),
        ("assign_timestamps_and_watermarks", 5, "needs a WatermarkStrategy"),
    ],
)
def test_functions_of_the_wrong_kind_are_refused_where_they_are_given(pairs, call, function, words):
    with pytest.raises(TypeError, match=words):
        getattr(pairs, call)(function)


@pytest.mark.parametrize(
    ("call", "arguments", "words"),
    [
        ("process", (Pass(),), r"process\(\) needs a KeyedProcessFunction, got Pass, a ProcessFunction"),
        ("reduce", (lambda a: a,), "2 arguments"),
        ("reduce", (Plus,), "is a class"),
        ("fold", (0, lambda v: v), "2 arguments"),
        ("fold", (0, Plus()), "needs a FoldFunction"),
        ("map_with_state", (lambda v: v,), "2 arguments"),
        ("map_with_state", (Double(),), r"a function object gets its state in open\(\)"),
        ("sum", (1.0,), "position"),
    ],
)
def test_keyed_functions_of_the_wrong_kind_are_refused(keyed, call, arguments, words):
    with pytest.raises(TypeError, match=words):
        getattr(keyed, call)(*arguments)


def test_a_coroutine_function_is_refused(pairs):
    async def fetch(x):
        return x

    class Fetching:
        async def __call__(self, x):
            return x

    async def fetch_each(x):
        yield x

    class Map(MapFunction):
        async def map(self, value):
            return value

    class Alarm(KeyedProcessFunction):
        def process_element(self, value, ctx):
            return [value]

        async def on_timer(self, timestamp, ctx):  # type: ignore[override]
            return []

    keyed = pairs.key_by(lambda pair: pair[0])
    for call, name in (
        (lambda: pairs.map(fetch), "map"),
        (lambda: pairs.map(Fetching()), "map"),
        (lambda: pairs.map(Map()), "map"),
        (lambda: pairs.filter(fetch), "filter"),
        (lambda: pairs.flat_map(fetch_each), "flat_map"),
        (lambda: pairs.key_by(fetch), "key_by"),
        (lambda: keyed.process(Alarm()), "process"),
    ):
        needs = rf"{name}\(\): .* is a coroutine function; {name}\(\) needs a plain one\. AsyncDataStream"
        with pytest.raises(TypeError, match=needs):
            call()


def test_an_object_with_the_method_but_not_the_class_is_told_so(pairs):
    class Duck:
        def map(self, value):
            return value

    with pytest.raises(TypeError, match="it has map, so let its class extend MapFunction"):
        pairs.map(Duck())


def test_a_generator_is_refused_where_one_result_is_taken(pairs, keyed):
    def both(x):
        yield x
        yield x

    class Both(MapFunction):
        def map(self, value):
            yield value

    for call in (
        lambda: pairs.map(both),
        lambda: pairs.map(Both()),
        lambda: pairs.filter(both),
        lambda: keyed.map(both),
    ):
        with pytest.raises(InvalidProgramError, match="flat_map"):
            call()
    pairs.flat_map(both)


def test_one_kind_of_checkpointed_function_at_a_time(pairs):
    class Confused(MapFunction, CheckpointedFunction, ListCheckpointed):
        def map(self, value):
            return value

        def snapshot_state(self, context):  # type: ignore[override]
            pass

        def initialize_state(self, context):
            pass

        def restore_state(self, state):
            pass

    with pytest.raises(InvalidProgramError, match="choose one"):
        pairs.map(Confused())


# ------------------------------------------------------------------------------------------- functions are sent


def test_a_captured_variable_that_cannot_be_sent_is_named(pairs):
    lock = threading.Lock()
    with pytest.raises(
        InvalidProgramError, match=r"map\(\): <lambda> \(test_streams.py:\d+\) captures 'lock' \(lock\)"
    ):
        pairs.map(lambda x: (lock, x))


def test_a_global_that_cannot_be_sent_is_named(pairs):
    with pytest.raises(InvalidProgramError, match="captures 'LOCK'"):
        pairs.map(lambda x: (LOCK, x))
    with pytest.raises(InvalidProgramError, match="captures 'LOCK'"):
        pairs.map(lambda x: [LOCK for _ in x])


def test_the_path_to_an_attribute_is_given(pairs):
    class Client:
        def __init__(self):
            self.pool = {"main": [1, threading.Lock()]}

    class Call(MapFunction):
        def __init__(self):
            self.client = Client()

        def map(self, value):
            return value

    with pytest.raises(
        InvalidProgramError, match=r"""Call captures "client\.pool\['main'\]\[1\]" \(lock\).*open\(\)"""
    ):
        pairs.map(Call())
    call = Call()
    with pytest.raises(InvalidProgramError, match=r"self\.client\.pool"):
        pairs.map(call.map)


def test_a_default_argument_that_cannot_be_sent_is_found(pairs):
    with pytest.raises(InvalidProgramError, match="default argument"):
        pairs.map(lambda x, lock=threading.Lock(): x)  # noqa: B008


def test_streams_and_environments_do_not_belong_into_functions(env, pairs):
    with pytest.raises(InvalidProgramError, match=r"captures 'pairs' \(DataStream\).*cannot be used inside a function"):
        pairs.map(lambda x: pairs)
    with pytest.raises(InvalidProgramError, match=r"captures 'env' \(StreamExecutionEnvironment\)"):
        pairs.map(lambda x: env)
    with pytest.raises(TypeError, match="cannot be used inside a function"):
        pickle.dumps(pairs)


def test_what_open_will_set_need_not_be_sendable(pairs):
    class Late(MapFunction):
        def open(self, runtime_context):
            self.lock = threading.Lock()

        def map(self, value):
            return value

    pairs.map(Late())


def test_all_places_that_take_functions_check_them(env, pairs, keyed):
    lock = threading.Lock()

    class Locked(SinkFunction):
        def __init__(self):
            self.lock = lock

        def invoke(self, value, context):
            pass

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, ts: lock)  # type: ignore[arg-type, return-value]
    for call in (
        lambda: pairs.filter(lambda x: lock),
        lambda: pairs.flat_map(lambda x: lock),
        lambda: pairs.key_by(lambda x: lock),
        lambda: pairs.partition_custom(lambda key, n: lock, 0),
        lambda: pairs.partition_custom(lambda key, n: 0, lambda x: lock),
        lambda: pairs.add_sink(Locked()),
        lambda: pairs.assign_timestamps_and_watermarks(strategy),
        lambda: keyed.reduce(lambda a, b: lock),
        lambda: keyed.fold(lock, lambda a, b: a),
        lambda: keyed.fold(0, lambda a, b: lock),
        lambda: keyed.map_with_state(lambda v, s: (lock, s)),
    ):
        with pytest.raises(InvalidProgramError, match="lock"):
            call()


def test_a_refused_call_draws_nothing(env, pairs):
    with pytest.raises(TypeError):
        pairs.map(42)
    with pytest.raises(InvalidProgramError, match="nothing to execute"):
        env.explain()
