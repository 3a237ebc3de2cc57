"""What the environment, the execution plan and the runtime context say of a job."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.datastream.functions import KeyedProcessFunction, MapFunction, ProcessFunction, RuntimeContext
from tests.recorded.family import recorded


class Keep(KeyedProcessFunction):

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        yield value


@recorded()
def context_facts(env):
    """What a runtime context tells in a chain of a map behind a source, at parallelism 1."""

    class Facts(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.facts = [
                runtime_context.get_task_name(), runtime_context.get_task_name_with_subtasks(),
                runtime_context.get_number_of_parallel_subtasks(), runtime_context.get_max_number_of_parallel_subtasks(),
                runtime_context.get_index_of_this_subtask(), runtime_context.get_attempt_number(),
                runtime_context.get_job_parameter("mine", "absent"), runtime_context.get_job_parameter("other", "absent")]

        def map(self, value):
            return self.facts

    env.get_config().set_global_job_parameters({"mine": "given"})
    return env.from_collection([1]).map(Facts())


@recorded()
def context_facts_keyed(env):
    """Task names around a keyed operator."""

    class Facts(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.facts = runtime_context.get_task_name(), runtime_context.get_task_name_with_subtasks()

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            yield self.facts

    class MapFacts(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.facts = runtime_context.get_task_name(), runtime_context.get_task_name_with_subtasks()

        def map(self, value):
            return self.facts, value

    return (env.from_collection([1]).map(lambda x: x).name("first").key_by(lambda x: x)
            .process(Facts()).map(MapFacts()).key_by(lambda x: 0).map(MapFacts()))


@recorded(parallelism=2, ordered=False)
def context_facts_two(env):
    """What a runtime context tells in a named operator at parallelism 2."""

    class Facts(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.facts = [
                runtime_context.get_task_name(), runtime_context.get_task_name_with_subtasks(),
                runtime_context.get_number_of_parallel_subtasks(), runtime_context.get_max_number_of_parallel_subtasks(),
                runtime_context.get_index_of_this_subtask(), runtime_context.get_attempt_number()]

        def map(self, value):
            return self.facts

    env.set_max_parallelism(10)
    return env.from_collection([1]).broadcast().map(Facts()).name("facts")


@recorded()
def context_job_parameter_kinds(env):
    """Job parameters are strings."""

    class Facts(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.facts = [runtime_context.get_job_parameter(name, "absent") for name in ("number", "flag", "none", "empty")]

        def map(self, value):
            return self.facts

    env.get_config().set_global_job_parameters({"number": "1", "flag": "true", "empty": ""})
    return env.from_collection([1]).map(Facts())


@recorded()
def context_max_parallelism(env):
    """The maximum parallelism of a keyed operator at parallelism 1."""

    class Facts(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.facts = (runtime_context.get_number_of_parallel_subtasks(),
                          runtime_context.get_max_number_of_parallel_subtasks())

        def map(self, value):
            return self.facts

    return env.from_collection([1]).key_by(lambda x: x).map(Facts())


@recorded(result="stdout")
def execute_nothing(env):
    """A job without operators cannot be executed."""
    return None


@recorded(result="stdout")
def execute_without_sink(env):
    """A job of operators without a sink."""
    env.from_collection([1]).map(lambda x: x)


@recorded()
def names_and_uids(env):
    """Names, uids and descriptions do not change the results."""
    return (env.from_collection([1, 2]).name("numbers").uid("numbers-uid")
            .map(lambda x: x + 1).name("plus one").uid("plus-uid").set_description("adds one")
            .filter(lambda x: True).name("all").set_uid_hash("0123456789abcdef0123456789abcdef").disable_chaining())


@recorded(result="facts")
def names_by_default(env):
    """What operators are called when nobody names them."""

    class Pass(ProcessFunction):

        def process_element(self, value, ctx: ProcessFunction.Context):
            yield value

    source = env.from_collection([1])
    sequence = env.from_source(NumberSequenceSource(1, 2), WatermarkStrategy.no_watermarks(), "numbers")
    keyed = source.key_by(lambda x: x)
    tuples = env.from_collection([(1, 2)], Types.TUPLE([Types.INT(), Types.INT()]))
    custom = source.partition_custom(lambda key, n: 0, lambda x: x)
    streams = {
        "collection": source, "sequence": sequence, "map": source.map(lambda x: x),
        "flat_map": source.flat_map(lambda x: [x]), "filter": source.filter(lambda x: True),
        "process": source.process(Pass()), "keyed map": keyed.map(lambda x: x),
        "keyed flat_map": keyed.flat_map(lambda x: [x]), "keyed filter": keyed.filter(lambda x: True),
        "keyed process": keyed.process(Keep()), "reduce": keyed.reduce(lambda a, b: a), "sum": keyed.sum(),
        "min_by": keyed.min_by(), "project": tuples.project(0), "partition_custom": custom,
        "timestamps": source.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()),
        "named": source.map(lambda x: x).name("mine")}
    return [(what, stream.get_name()) for what, stream in streams.items()]


@recorded(result="facts", quirk="The error is py4j's about a missing Java method.")
def names_of_views(env):
    """Partitioned and united streams are not operators and have no name."""
    source = env.from_collection([1]).map(lambda x: x)
    return [type(problem_of(stream.get_name)).__name__ for stream in (
        source.rebalance(), source.broadcast(), source.shuffle(), source.rescale(), source.forward(),
        source.union(source))]


@recorded()
def parallelism_above_maximum(env):
    """Parallelism may not exceed the maximum parallelism."""
    return env.from_collection([1, 2]).key_by(lambda x: x).map(lambda x: x).set_max_parallelism(2).set_parallelism(3)


@recorded()
def parallelism_of_collection(env):
    """A collection source cannot be made parallel."""
    return env.from_collection([1, 2]).set_parallelism(2)


@recorded()
def parallelism_zero(env):
    """Parallelism must be positive."""
    return env.from_collection([1, 2]).map(lambda x: x).set_parallelism(0)


@recorded(parallelism=2, result="plan")
def plan_keyed(env):
    """The execution plan of a keyed process with names and a uid."""
    (env.from_collection([1, 2, 3]).name("numbers").map(lambda x: x, Types.INT()).name("same").set_parallelism(1)
     .key_by(lambda x: x, Types.INT()).process(Keep(), Types.INT()).uid("keep").rebalance().print().name("out"))


@recorded(parallelism=2, result="plan")
def plan_partitioners(env):
    """The execution plan shows how streams are partitioned."""
    stream = env.from_collection([1, 2, 3]).shuffle().map(lambda x: x).broadcast().map(lambda x: x)
    stream = stream.rescale().map(lambda x: x).rebalance().map(lambda x: x).forward().map(lambda x: x)
    stream.partition_custom(lambda key, n: 0, lambda x: x).map(lambda x: x).set_parallelism(1).print()


@recorded(mode="BATCH", result="plan")
def plan_reduce(env):
    """The execution plan of a rolling aggregate in BATCH mode."""
    env.from_collection([("a", 1)]).key_by(lambda x: x[0]).sum(1).print()


@recorded(result="plan")
def plan_stateless(env):
    """The execution plan of a source, three functions and a print."""
    (env.from_collection([1, 2, 3]).map(lambda x: x).filter(lambda x: True).flat_map(lambda x: [x]).print())


@recorded(result="plan")
def plan_unfinished(env):
    """The execution plan of a job without a sink."""
    env.from_collection([1]).map(lambda x: x)


@recorded(result="facts")
def types_as_text(env):
    """How types write themselves."""
    types = [Types.STRING(), Types.BYTE(), Types.BOOLEAN(), Types.SHORT(), Types.INT(), Types.LONG(), Types.FLOAT(),
             Types.DOUBLE(), Types.CHAR(), Types.BIG_INT(), Types.BIG_DEC(), Types.INSTANT(), Types.SQL_DATE(),
             Types.SQL_TIME(), Types.SQL_TIMESTAMP(), Types.PICKLED_BYTE_ARRAY(), Types.ROW([Types.INT()]),
             Types.ROW_NAMED(["a"], [Types.INT()]), Types.TUPLE([Types.INT(), Types.STRING()]),
             Types.PRIMITIVE_ARRAY(Types.INT()), Types.BASIC_ARRAY(Types.INT()), Types.OBJECT_ARRAY(Types.STRING()),
             Types.MAP(Types.STRING(), Types.INT()), Types.LIST(Types.INT())]
    return [(str(declared), repr(declared)) for declared in types]


@recorded(result="facts")
def types_of_streams(env):
    """The declared type of streams, as text."""
    untyped = env.from_collection([1])
    typed = env.from_collection([(1, "a")], Types.TUPLE([Types.INT(), Types.STRING()]))
    rows = env.from_collection([(1, "a")], Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()]))
    return [str(stream.get_type()) for stream in (
        untyped, typed, rows, typed.map(lambda x: x), typed.map(lambda x: x, Types.LONG()),
        typed.filter(lambda x: True), typed.project(1), untyped.key_by(lambda x: x),
        typed.key_by(lambda x: x[0], Types.INT()), typed.key_by(lambda x: x[0]).sum(0), rows.key_by(lambda x: x[0]),
        typed.rebalance(), rows.union(rows))]


@recorded()
def uid_twice(env):
    """A uid may be used once."""
    return (env.from_collection([1, 2]).map(lambda x: x).uid("same")
            .rebalance().map(lambda x: x).uid("same"))


def problem_of(call):
    try:
        call()
    except Exception as problem:
        return problem
    return None
