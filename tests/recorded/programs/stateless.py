"""Functions without keyed state: map, flat_map, filter, project, process; and None between them."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import FilterFunction, FlatMapFunction, MapFunction, ProcessFunction, RuntimeContext
from tests.recorded.family import recorded


def split(line):
    yield from line.split()


@recorded()
def chain_of_stateless(env):
    """A chain of map, filter, flat_map and map."""
    return (env.from_collection(list(range(10)))
            .map(lambda i: (f"user_{i % 3}", i))
            .filter(lambda pair: pair[1] % 2 == 0)
            .flat_map(lambda pair: [pair, (pair[0], -pair[1])])
            .map(lambda pair: f"{pair[0]}={pair[1]}"))


@recorded()
def empty_collection(env):
    """A stream of nothing."""
    return env.from_collection([]).map(lambda x: x)


@recorded()
def filter_keeps_type(env):
    """filter keeps the declared type of its input."""

    class Even(FilterFunction):

        def filter(self, value):
            return value[0] % 2 == 0

    typed = env.from_collection([(1, 1.1), (2, 2.2)], Types.TUPLE([Types.INT(), Types.FLOAT()]))
    return typed.filter(Even())


@recorded()
def filter_lambda(env):
    """filter keeps the records for which the predicate holds."""
    return env.from_collection([1, 2, 3, 4]).filter(lambda x: x % 2 == 0)


@recorded()
def filter_truthy(env):
    """The predicate's result is judged by its truth."""
    return env.from_collection([0, 1, "", "a", None, [], [0]]).filter(lambda x: x)


@recorded()
def flat_map_class(env):
    """A FlatMapFunction with an attribute."""

    class Repeat(FlatMapFunction):

        def __init__(self, times):
            self.times = times

        def flat_map(self, value):
            for n in range(self.times):
                yield value, n

    return env.from_collection(["a", "b"]).flat_map(Repeat(2))


@recorded()
def flat_map_generator(env):
    """A flat_map that yields gives its results in order."""
    return env.from_collection(["to be or", "", "not to be"]).flat_map(split)


@recorded()
def flat_map_list(env):
    """A flat_map may return a list, a tuple or a range."""
    return env.from_collection([0, 1, 2, 3]).flat_map(lambda n: [[], (n,), range(n), [n, [n]]][n])


@recorded()
def flat_map_none(env):
    """A flat_map that returns None."""
    return env.from_collection([1, 2]).flat_map(lambda n: None if n == 1 else [n])


@recorded()
def flat_map_string(env):
    """A flat_map that returns a string gives its characters."""
    return env.from_collection(["ab", "c"]).flat_map(lambda text: text)


@recorded()
def map_function_class(env):
    """A MapFunction is opened once and its attributes live as long as the subtask."""

    class Numbering(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.opened = getattr(self, "opened", 0) + 1
            self.seen = 0

        def map(self, value):
            self.seen += 1
            return self.opened, self.seen, value

    return env.from_collection(["a", "b", "c"]).map(Numbering())


@recorded()
def map_keeps_any_python_object(env):
    """Untyped records travel pickled, so sets, dicts and nested containers stay what they are."""
    values = [{"a": [1, 2.5]}, {1, 2}, (1, ("x", None)), b"\x00\xff", 2 ** 100, float("nan"), -0.0, [], ()]
    return env.from_collection(values).map(lambda x: x).rebalance().map(lambda x: x)


@recorded()
def map_lambda(env):
    """map gives one result for each record, in order."""
    return env.from_collection([1, 2, 3]).map(lambda x: x * 2)


@recorded()
def map_not_callable(env):
    """A function that is neither a MapFunction nor callable is refused where it is given."""
    return env.from_collection([1]).map(42)


@recorded()
def map_raises(env):
    """A Python exception in a function fails the job."""
    return env.from_collection([1, 0]).map(lambda x: 1 // x)


@recorded()
def none_between_functions(env):
    """None passes from one chained function to the next."""
    return env.from_collection([1, 2]).map(lambda x: None).map(repr)


@recorded(quirk="As in none_leaves_a_chain.")
def none_collected(env):
    """Nor be collected as a record."""
    return env.from_collection([1, 2]).map(lambda x: None if x == 1 else x)


@recorded()
def none_collected_from_source(env):
    """A collection's None, collected with no function in between."""
    return env.from_collection([1, None])


@recorded()
def none_in_collection(env):
    """None may stand in a collection and reach a function."""
    return env.from_collection([1, None, 3]).map(repr)


@recorded(
    quirk="Untyped records are pickled, yet None alone is sent as no bytes at all, which the JVM side cannot read.",
)
def none_leaves_a_chain(env):
    """None cannot leave a chain of functions."""
    return env.from_collection([1, 2]).map(lambda x: None).rebalance().map(repr)


@recorded()
def process_registers_timer(env):
    """Timers may not be set on a stream without keys."""

    class Timer(ProcessFunction):

        def process_element(self, value, ctx: ProcessFunction.Context):
            ctx.timer_service().register_event_time_timer(1)
            yield value

    return env.from_collection([1]).process(Timer())


@recorded()
def process_returns_list(env):
    """A ProcessFunction may return a list, or None for nothing."""

    class Returning(ProcessFunction):

        def process_element(self, value, ctx: ProcessFunction.Context):
            return [value, value] if value > 1 else None

    return env.from_collection([1, 2, 3]).process(Returning())


@recorded()
def process_with_timestamps(env):
    """Assigned timestamps are seen by the context, also behind further operators."""

    class Field(TimestampAssigner):

        def extract_timestamp(self, value, record_timestamp):
            return value[1]

    class Times(ProcessFunction):

        def process_element(self, value, ctx: ProcessFunction.Context):
            yield value[0], ctx.timestamp()

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Field())
    return (env.from_collection([("a", 5), ("b", 7), ("c", -1)])
            .assign_timestamps_and_watermarks(strategy)
            .map(lambda pair: pair)
            .flat_map(lambda pair: [pair, pair])
            .process(Times()))


@recorded()
def process_without_timestamps(env):
    """Without assigned timestamps a record has none, and the watermark is at its minimum."""

    class Times(ProcessFunction):

        def process_element(self, value, ctx: ProcessFunction.Context):
            yield value, ctx.timestamp(), ctx.timer_service().current_watermark()

    return env.from_collection([1, 2]).process(Times())


@recorded()
def process_yields(env):
    """A ProcessFunction gives what it yields."""

    class Twice(ProcessFunction):

        def process_element(self, value, ctx: ProcessFunction.Context):
            if value != 2:
                yield value
                yield value * 10

    return env.from_collection([1, 2, 3]).process(Twice())


@recorded()
def project_out_of_range(env):
    """A field that does not exist."""
    return env.from_collection([(1, "a")], Types.TUPLE([Types.INT(), Types.STRING()])).project(2)


@recorded()
def project_row(env):
    """Rows cannot be projected."""
    return env.from_collection([(1, "a")], Types.ROW([Types.INT(), Types.STRING()])).project(1)


@recorded()
def project_tuple(env):
    """project picks and reorders fields of tuples; a field may come twice."""
    typed = env.from_collection([(1, "a", 2.5), (2, "b", 3.5)],
                                Types.TUPLE([Types.INT(), Types.STRING(), Types.DOUBLE()]))
    return typed.project(2, 0, 0)


@recorded()
def project_untyped(env):
    """project needs a declared tuple type."""
    return env.from_collection([(1, "a"), (2, "b")]).project(1)
