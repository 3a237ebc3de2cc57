"""The translation of the stream graph to the job graph."""

import pytest

from ekorn.common import Configuration, Types, WatermarkStrategy
from ekorn.datastream import (
    KeyedProcessFunction,
    OutputTag,
    ParallelSourceFunction,
    ProcessFunction,
    RuntimeExecutionMode,
    SinkFunction,
    SourceFunction,
    StreamExecutionEnvironment,
)
from ekorn.errors import InvalidProgramError
from ekorn.functions.source_contract import Boundedness, Source
from ekorn.graph.job_graph import ChainLink
from ekorn.graph.specs import Broadcast, CollectSpec, Custom, Forward, Global, Hash, Rebalance, Rescale, Shuffle
from ekorn.keygroups import default_max_parallelism
from ekorn.testing.drawn_job import drawn_job

TAG = OutputTag("side", Types.STRING())


class Keep(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


class Split(ProcessFunction):
    def process_element(self, value, ctx):
        yield value
        yield TAG, str(value)


class Numbers(Source):
    """A source that reads nothing: the graph is never run here."""

    def __init__(self, boundedness=Boundedness.BOUNDED):
        self._boundedness = boundedness

    @property
    def boundedness(self):
        return self._boundedness

    def discover_splits(self, parallelism):
        return []

    def create_reader(self, split, position):
        raise AssertionError


class Drop(SinkFunction):
    def invoke(self, value, context):
        pass


class Push(SourceFunction):
    def run(self, ctx):
        pass

    def cancel(self):
        pass


class PushInParallel(Push, ParallelSourceFunction):
    pass


def same(x):
    return x


@pytest.fixture
def env():
    return StreamExecutionEnvironment()


def numbers(env, boundedness=Boundedness.BOUNDED):
    return env.from_source(Numbers(boundedness), WatermarkStrategy.no_watermarks(), "numbers")


def build(env):
    return env.job_graph("job")


def names(graph):
    return [vertex.name for vertex in graph.vertices]


def exchanges(graph):
    return [(e.source, e.target, type(e.partitioning)) for e in graph.exchanges]


# ------------------------------------------------------------------------------------------- chains


def test_operators_of_equal_parallelism_share_a_vertex(env):
    env.from_collection([1]).map(same).filter(bool).print()
    graph = build(env)
    assert names(graph) == ["Source: Collection Source -> Map -> Filter -> Sink: Print to Std. Out"]
    assert graph.vertices[0].links == (ChainLink(0, 1), ChainLink(1, 2), ChainLink(2, 3))
    assert graph.exchanges == ()


def test_a_change_of_parallelism_ends_a_chain_with_a_rebalance(env):
    env.set_parallelism(2)
    env.from_collection([1]).map(same).map(same).set_parallelism(3).print()
    graph = build(env)
    assert names(graph) == ["Source: Collection Source", "Map", "Map", "Sink: Print to Std. Out"]
    assert [v.parallelism for v in graph.vertices] == [1, 2, 3, 2]
    assert exchanges(graph) == [(0, 1, Rebalance), (1, 2, Rebalance), (2, 3, Rebalance)]


def test_branches_of_one_operator_are_chained_to_it(env):
    mapped = env.from_collection([1]).map(same)
    mapped.filter(bool).print()
    mapped.flat_map(lambda x: [x]).add_sink(Drop())
    (vertex,) = build(env).vertices
    assert vertex.name == (
        "Source: Collection Source -> Map -> (Filter -> Sink: Print to Std. Out, FlatMap -> Sink: Unnamed)"
    )
    assert vertex.links == (ChainLink(0, 1), ChainLink(1, 2), ChainLink(2, 3), ChainLink(1, 4), ChainLink(4, 5))


def test_a_side_output_is_chained_under_its_tag(env):
    split = env.from_collection([1]).process(Split())
    split.print()
    split.get_side_output(TAG).map(same)
    (vertex,) = build(env).vertices
    assert vertex.links == (ChainLink(0, 1), ChainLink(1, 2), ChainLink(1, 3, "side"))
    assert vertex.operators[3].input_type == Types.STRING()


def test_a_side_output_over_an_exchange_keeps_tag_and_type(env):
    env.from_collection([1]).process(Split()).get_side_output(TAG).rebalance().map(same)
    (exchange,) = build(env).exchanges
    assert (exchange.tag, exchange.type_info, exchange.source_operator) == ("side", Types.STRING(), 1)


def test_key_by_ends_a_chain(env):
    env.from_collection([("a", 1)]).map(same).key_by(lambda r: r[0], Types.STRING()).process(Keep()).map(same)
    graph = build(env)
    assert names(graph) == ["Source: Collection Source -> Map", "KEYED PROCESS -> Map"]
    (exchange,) = graph.exchanges
    assert isinstance(exchange.partitioning, Hash)
    assert exchange.partitioning.key.type_info == Types.STRING()
    keyed, plain = graph.vertices[1].operators
    assert keyed.key == exchange.partitioning.key
    assert plain.key is None


@pytest.mark.parametrize(
    ("partition", "kind"),
    [
        (lambda s: s.rebalance(), Rebalance),
        (lambda s: s.rescale(), Rescale),
        (lambda s: s.shuffle(), Shuffle),
        (lambda s: s.broadcast(), Broadcast),
        (lambda s: s.global_(), Global),
        (lambda s: s.global_partition(), Global),
        (lambda s: s.partition_custom(lambda key, n: 0, lambda r: r), Custom),
    ],
)
def test_a_partitioning_ends_a_chain(env, partition, kind):
    partition(env.from_collection([1]).map(same)).map(same)
    assert exchanges(build(env)) == [(0, 1, kind)]


def test_forward_keeps_a_chain(env):
    env.from_collection([1]).map(same).forward().map(same)
    assert len(build(env).vertices) == 1


def test_the_last_partitioning_counts(env):
    env.from_collection([1]).rebalance().broadcast().map(same)
    assert exchanges(build(env)) == [(0, 1, Broadcast)]


def test_without_chaining_each_operator_is_a_vertex(env):
    env.disable_operator_chaining()
    env.from_collection([1]).map(same).print()
    assert exchanges(build(env)) == [(0, 1, Forward), (1, 2, Forward)]


def test_start_new_chain_cuts_before_and_disable_chaining_on_both_sides(env):
    env.from_collection([1]).map(same).start_new_chain().map(same).map(same).disable_chaining().print()
    assert names(build(env)) == ["Source: Collection Source", "Map -> Map", "Map", "Sink: Print to Std. Out"]


def test_a_sink_that_disables_chaining_stands_alone(env):
    env.from_collection([1]).print().disable_chaining()
    assert len(build(env).vertices) == 2


def test_different_max_parallelism_is_chained_unless_switched_off(env):
    numbers(env).map(same).set_max_parallelism(64)
    assert len(build(env).vertices) == 1
    env.configure(
        Configuration().set_boolean("pipeline.operator-chaining.chain-operators-with-different-max-parallelism", False)
    )
    assert not env.is_chaining_of_operators_with_different_max_parallelism_enabled()
    assert len(build(env).vertices) == 2


# ------------------------------------------------------------------------------------------- unions


def test_a_union_is_several_edges_into_one_operator(env):
    left, right = env.from_collection([1]), env.from_collection([2])
    left.union(right).map(same)
    graph = build(env)
    assert exchanges(graph) == [(0, 2, Forward), (1, 2, Forward)]
    assert [v.level for v in graph.vertices] == [0, 0, 1]


def test_a_stream_united_with_itself_has_two_edges(env):
    source = env.from_collection([1])
    source.union(source).map(same)
    assert exchanges(build(env)) == [(0, 1, Forward), (0, 1, Forward)]


def test_each_leg_of_a_union_keeps_its_partitioning_until_another_is_asked_for(env):
    left, right = env.from_collection([1]), env.from_collection([2])
    left.rebalance().union(right.broadcast()).map(same)
    assert [e[2] for e in exchanges(build(env))] == [Rebalance, Broadcast]
    env.close()
    left.rebalance().union(right.broadcast()).shuffle().map(same)
    assert [e[2] for e in exchanges(build(env))] == [Shuffle, Shuffle]


def test_a_union_of_unions_is_flat(env):
    sources = [env.from_collection([n]) for n in range(3)]
    sources[0].union(sources[1]).union(sources[2]).map(same)
    assert len(build(env).exchanges) == 3


def test_a_united_keyed_stream_is_keyed_again(env):
    left, right = env.from_collection([1]), env.from_collection([2])
    left.union(right).key_by(same).reduce(lambda a, b: a)
    assert [e[2] for e in exchanges(build(env))] == [Hash, Hash]


# ------------------------------------------------------------------------------------------- levels


def test_levels_are_longest_paths(env):
    source = env.from_collection([1])
    far = source.rebalance().map(same).rebalance().map(same)
    source.union(far).map(same).name("meet")
    graph = build(env)
    assert [(v.name, v.level) for v in graph.vertices] == [
        ("Source: Collection Source", 0),
        ("Map", 1),
        ("Map", 2),
        ("meet", 3),
    ]
    assert [len(level) for level in graph.levels] == [1, 1, 1, 1]


def test_vertices_come_in_topological_order(env):
    first = env.from_collection([1])
    second = env.from_collection([2])
    second.rebalance().map(same).union(first.rebalance().map(same)).print()
    graph = build(env)
    assert all(e.source < e.target for e in graph.exchanges)
    assert [v.id for v in graph.vertices] == list(range(len(graph.vertices)))


def test_only_what_leads_to_an_operator_is_run(env):
    env.from_collection([1])
    env.from_collection([2]).map(same)
    assert len(build(env).vertices) == 1


# ------------------------------------------------------------------------------------------- parallelism


@pytest.mark.parametrize(
    ("parallelism", "expected"),
    [(1, 128), (85, 128), (86, 256), (170, 256), (171, 256), (1000, 2048), (21845, 32768), (32768, 32768)],
)
def test_default_max_parallelism(parallelism, expected):
    assert default_max_parallelism(parallelism) == expected


def test_max_parallelism_is_the_operators_then_the_environments_then_derived(env):
    keyed = numbers(env).key_by(same)
    keyed.reduce(lambda a, b: a).set_max_parallelism(10)
    keyed.reduce(lambda a, b: a).set_parallelism(100)
    _, first, second = build(env).vertices
    assert (first.max_parallelism, first.max_parallelism_set) == (10, True)
    assert (second.max_parallelism, second.max_parallelism_set) == (256, False)
    env.set_max_parallelism(200)
    _, first, second = build(env).vertices
    assert (first.max_parallelism, second.max_parallelism, second.max_parallelism_set) == (10, 200, True)


def test_a_source_of_one_subtask_does_not_bind_what_is_chained_to_it(env):
    env.from_collection([1]).map(same)
    (vertex,) = build(env).vertices
    assert (vertex.parallelism, vertex.max_parallelism, vertex.max_parallelism_set) == (1, 128, False)


def test_parallelism_above_the_maximum_is_refused(env):
    numbers(env).map(same).set_parallelism(9).set_max_parallelism(8).name("wide")
    with pytest.raises(InvalidProgramError, match=r"'wide' \(written at test_graph_build.py:\d+\) is 9, above .* 8"):
        build(env)


def test_forward_between_different_parallelisms_is_refused(env):
    numbers(env).map(same).set_parallelism(2).forward().map(same).set_parallelism(3)
    with pytest.raises(InvalidProgramError, match="2 and 3"):
        build(env)


@pytest.mark.parametrize("parallelism", [0, -2, 32769])
def test_a_parallelism_out_of_range_is_refused_where_it_is_written(env, parallelism):
    with pytest.raises(ValueError, match="1 to 32768"):
        numbers(env).map(same).set_parallelism(parallelism)
    with pytest.raises(ValueError, match="1 to 32768"):
        env.set_parallelism(parallelism)


@pytest.mark.parametrize("maximum", [0, -1, 32769])
def test_a_max_parallelism_out_of_range_is_refused_where_it_is_written(env, maximum):
    with pytest.raises(ValueError, match="1 to 32768"):
        numbers(env).set_max_parallelism(maximum)
    with pytest.raises(ValueError, match="1 to 32768"):
        env.set_max_parallelism(maximum)


def test_minus_one_is_the_environments_parallelism_again(env):
    env.set_parallelism(4)
    numbers(env).map(same).set_parallelism(2).set_parallelism(-1)
    assert build(env).vertices[0].parallelism == 4


def test_collections_and_plain_source_functions_have_one_subtask(env):
    env.set_parallelism(4)
    env.from_collection([1]).map(same)
    env.add_source(Push()).map(same)
    env.add_source(PushInParallel()).map(same)
    sources = [v for v in build(env).vertices if v.is_source]
    assert [v.parallelism for v in sources] == [1, 1, 4]
    with pytest.raises(ValueError, match="must be 1"):
        env.from_collection([1]).set_parallelism(2)
    with pytest.raises(ValueError, match="must be 1"):
        env.add_source(Push()).set_max_parallelism(2)


def test_force_non_parallel(env):
    env.set_parallelism(4)
    alone = numbers(env).map(same).set_parallelism(3).force_non_parallel()
    graph = build(env)
    assert (graph.vertices[1].parallelism, graph.vertices[1].max_parallelism) == (1, 1)
    with pytest.raises(ValueError, match="must be 1"):
        alone.set_parallelism(2)


def test_a_collector_takes_the_parallelism_of_its_input(env):
    env.set_parallelism(2)
    graph = drawn_job(numbers(env).map(same).set_parallelism(3)).graph
    assert [v.parallelism for v in graph.vertices] == [2, 3]
    assert isinstance(graph.vertices[1].operators[-1].spec, CollectSpec)


# ------------------------------------------------------------------------------------------- slot groups


def test_slot_groups_are_inherited_from_agreeing_inputs(env):
    one = env.from_collection([1]).slot_sharing_group("g").map(same)
    other = env.from_collection([2]).map(same)
    one.union(one).map(same).name("in g")
    one.union(other).map(same).name("in default")
    assert [(v.name, v.slot_group) for v in build(env).vertices] == [
        ("Source: Collection Source -> Map", "g"),
        ("Source: Collection Source -> Map", "default"),
        ("in g", "g"),
        ("in default", "default"),
    ]


def test_another_slot_group_ends_a_chain_and_adds_slots(env):
    env.set_parallelism(3)
    numbers(env).map(same).slot_sharing_group("other").set_parallelism(2)
    graph = build(env)
    assert graph.slot_groups() == (("default", 3), ("other", 2))
    assert graph.slot_count == 5
    assert graph.slot_of(graph.vertices[1], 1) == 4


def test_an_operator_can_go_back_to_the_default_group(env):
    numbers(env).slot_sharing_group("g").map(same).slot_sharing_group("default")
    assert [v.slot_group for v in build(env).vertices] == ["g", "default"]


# ------------------------------------------------------------------------------------------- modes


def test_batch_needs_sources_that_end(env):
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    numbers(env).map(same)
    assert build(env).settings.batch
    numbers(env, Boundedness.CONTINUOUS_UNBOUNDED).map(same)
    with pytest.raises(InvalidProgramError, match="'Source: numbers'"):
        build(env)


def test_batch_refuses_source_functions(env):
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.add_source(Push()).map(same)
    with pytest.raises(InvalidProgramError, match="Custom Source"):
        build(env)


def test_automatic_looks_at_the_sources(env):
    env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    numbers(env).map(same)
    assert build(env).settings.batch
    numbers(env, Boundedness.CONTINUOUS_UNBOUNDED).map(same)
    assert not build(env).settings.batch


def test_streaming_is_the_default(env):
    numbers(env).map(same)
    assert not build(env).settings.batch


def test_batch_takes_no_checkpoints(env):
    env.enable_checkpointing(1000)
    numbers(env).map(same)
    assert build(env).settings.checkpointing
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    assert not build(env).settings.checkpointing


# ------------------------------------------------------------------------------------------- refused


def test_nothing_to_execute(env):
    with pytest.raises(InvalidProgramError, match="nothing to execute"):
        build(env)
    env.from_collection([1])
    with pytest.raises(InvalidProgramError, match="a source alone does not run"):
        build(env)


def test_unaligned_checkpoints_exclude_custom_partitioning_unless_forced(env):
    env.enable_checkpointing(1000).get_checkpoint_config().enable_unaligned_checkpoints()
    numbers(env).partition_custom(lambda key, n: 0, same).map(same)
    with pytest.raises(InvalidProgramError, match="partition_custom"):
        build(env)
    env.get_checkpoint_config().set_force_unaligned_checkpoints(True)
    build(env)


def test_settings_reach_the_graph(env):
    env.get_config().set_global_job_parameters({"a": 1}).set_auto_watermark_interval(50).enable_object_reuse()
    env.register_cached_file("some.txt", "words", executable=True)
    numbers(env).map(same).set_buffer_timeout(5).set_description("the same")
    graph = build(env)
    settings = graph.settings
    assert settings.job_parameters == {"a": "1"}
    assert settings.auto_watermark_interval_ms == 50
    assert settings.object_reuse
    assert [(f.name, f.path, f.executable) for f in settings.cached_files] == [("words", "some.txt", True)]
    operator = graph.vertices[0].operators[1]
    assert (operator.buffer_timeout_ms, operator.description) == (5, "the same")
