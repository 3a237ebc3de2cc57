"""Keys: which values are keys, which keys are equal, and what a keyed stream offers."""

from pyflink.common import Row, Types
from pyflink.datastream.functions import KeyedProcessFunction, KeySelector, MapFunction, ProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor
from tests.recorded.family import recorded


@recorded()
def key_array_typed(env):
    """Arrays as keys."""
    values = [([1], 1), ([1], 2)]
    keyed = env.from_collection(values).key_by(lambda x: x[0], Types.PRIMITIVE_ARRAY(Types.INT()))
    return keyed.reduce(lambda a, b: (a[0], a[1] + b[1]))


@recorded()
def key_by_in_sequence(env):
    """Two keyed operators one after the other."""
    values = [("a", 1), ("b", 2), ("a", 3), ("c", 4)]
    counted = env.from_collection(values).key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    return counted.key_by(lambda x: x[1] % 2).reduce(lambda a, b: (a[0] + b[0], a[1] + b[1]))


@recorded()
def key_by_lambda(env):
    """A count per key with a value state."""

    class Count(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            count = (self.count.value() or 0) + 1
            self.count.update(count)
            yield ctx.get_current_key(), count

    return env.from_collection(list("abcabca")).key_by(lambda x: x).process(Count())


@recorded()
def key_by_not_callable(env):
    """A key selector that is neither a KeySelector nor callable is refused."""
    return env.from_collection([(1, 2)]).key_by(0).map(lambda x: x)


@recorded()
def key_by_selector(env):
    """A KeySelector is opened once; the key has a declared type."""

    class Length(KeySelector):

        def open(self, runtime_context: RuntimeContext):
            self.offset = 100

        def get_key(self, value):
            return len(value) + self.offset

    class Tell(KeyedProcessFunction):

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            yield ctx.get_current_key(), value

    return env.from_collection(["a", "bb", "c"]).key_by(Length(), Types.INT()).process(Tell())


@recorded()
def key_by_twice(env):
    """key_by of a keyed stream keys the original values anew."""
    values = [("a", 1), ("b", 1), ("a", 2)]
    keyed = env.from_collection(values).key_by(lambda x: x[0]).key_by(lambda x: x[1])
    return keyed.reduce(lambda a, b: (a[0] + b[0], a[1]))


@recorded()
def key_current_typed(env):
    """The current key has the declared type: an int for DOUBLE arrives as a float."""

    class Tell(KeyedProcessFunction):

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            yield ctx.get_current_key()

    return env.from_collection([1, 2]).key_by(lambda x: x, Types.DOUBLE()).process(Tell())


@recorded()
def key_current_untyped(env):
    """The current key of an untyped stream is the object the selector gave, None and tuples too."""

    class Tell(KeyedProcessFunction):

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            yield (ctx.get_current_key(),)

    return env.from_collection(["a", 1, (1, "b"), True, 2.0]).key_by(lambda x: x).process(Tell())


@recorded()
def key_dict_untyped(env):
    """Dicts as untyped keys, also with their entries in another order."""
    values = [({"a": 1, "b": 2}, 1), ({}, 1), ({"a": 1, "b": 2}, 2), ({}, 1), ({"b": 2, "a": 1}, 4)]
    return env.from_collection(values).key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


@recorded(
    quirk="A key that compares equal to the key of the record just before is taken for that key; see the untyped program.",
)
def key_equal_numbers_adjacent(env):
    """1, 1.0 and True as untyped keys, one directly after the other."""
    values = [(1, "int"), (1.0, "float"), (True, "bool"), (1, "int again"), (True, "bool again")]
    return env.from_collection(values).key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], a[1] + "+" + b[1]))


@recorded()
def key_equal_numbers_as_double(env):
    """1, 1.0 and True as keys of type DOUBLE, with another key in between: one key."""
    values = [(1, "int"), (0, ""), (1.0, "float"), (0, ""), (True, "bool"), (0, ""), (1, "int again")]
    return env.from_collection(values).key_by(lambda x: x[0], Types.DOUBLE()).reduce(lambda a, b: (a[0], a[1] + b[1]))


@recorded()
def key_equal_numbers_as_int(env):
    """1 and True as keys of type INT, with another key in between: one key."""
    values = [(1, "int"), (0, ""), (True, "bool"), (0, ""), (1, "int again")]
    return env.from_collection(values).key_by(lambda x: x[0], Types.INT()).reduce(lambda a, b: (a[0], a[1] + b[1]))


@recorded()
def key_equal_numbers_in_tuples(env):
    """(1,), (1.0,) and (True,) as untyped keys, with another key in between."""
    values = [(1, "int"), (0, ""), (1.0, "float"), (0, ""), (True, "bool"), (0, ""), (1, "int again")]
    return env.from_collection(values).key_by(lambda x: (x[0],)).reduce(lambda a, b: (a[0], a[1] + b[1]))


@recorded()
def key_equal_numbers_untyped(env):
    """1, 1.0 and True as untyped keys, with another key in between: three keys."""
    values = [(1, "int"), (0, ""), (1.0, "float"), (0, ""), (True, "bool"), (0, ""), (1, "int again"), (0, ""),
              (True, "bool again")]
    return env.from_collection(values).key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


@recorded(quirk="Untyped keys are compared as pickled bytes, and pickle writes a part seen before as a reference.")
def key_equal_tuples_shared_parts(env):
    """Equal untyped tuple keys whose two parts are, or are not, one object, with another key in between."""
    def key(pair):
        part = "".join(["k", "ey"])
        return {"shared": (part, part), "apart": (part, "".join(["ke", "y"])), "": ()}[pair[0]]

    values = [("shared", 1), ("", 0), ("apart", 10), ("", 0), ("shared", 100), ("", 0), ("apart", 1000)]
    return env.from_collection(values).key_by(key).reduce(lambda a, b: (a[0], a[1] + b[1]))


@recorded()
def key_float_as_int(env):
    """A float as a key of type INT."""
    return env.from_collection([(1.0, "float")]).key_by(lambda pair: pair[0], Types.INT()).map(lambda x: x)


@recorded()
def key_list_typed(env):
    """Lists as keys of type LIST, with another key in between."""
    values = [([1], 1), ([2], 1), ([1], 2)]
    keyed = env.from_collection(values).key_by(lambda x: x[0], Types.LIST(Types.INT()))
    return keyed.reduce(lambda a, b: (a[0], a[1] + b[1]))


@recorded()
def key_list_untyped(env):
    """Lists as untyped keys, with another key in between."""
    values = [([1], 1), ([2], 1), ([1], 2)]
    return env.from_collection(values).key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


@recorded(mode="BATCH")
def key_none_batch(env):
    """None as an untyped key in BATCH mode."""
    values = [(None, 1), ("x", 1), (None, 2)]
    return env.from_collection(values).key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


@recorded()
def key_none_first(env):
    """None as an untyped key of the very first record, and again later."""
    values = [(None, 1), ("x", 1), (None, 2)]
    return env.from_collection(values).key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


@recorded()
def key_none_in_tuple(env):
    """None inside an untyped tuple key."""
    values = [("a", None, 1), ("a", None, 2)]
    return env.from_collection(values).key_by(lambda x: x[:2]).reduce(lambda a, b: (*a[:2], a[2] + b[2]))


@recorded(parallelism=2, ordered=False)
def key_none_two_subtasks(env):
    """None as an untyped key at parallelism 2."""
    values = [("x", 1), (None, 1), ("x", 1), (None, 2)]
    return env.from_collection(values).key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


@recorded()
def key_none_typed(env):
    """None as a key of type STRING, with another key in between."""
    values = [("x", 1), (None, 1), ("x", 1), (None, 2)]
    keyed = env.from_collection(values).key_by(lambda x: x[0], Types.STRING())
    return keyed.reduce(lambda a, b: (a[0], a[1] + b[1]))


@recorded()
def key_none_untyped(env):
    """None as an untyped key, with another key in between."""
    values = [("x", 1), (None, 1), ("x", 1), (None, 2)]
    return env.from_collection(values).key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


@recorded()
def key_row(env):
    """Rows as untyped keys, with another key in between."""
    values = [("a", 1), ("b", 2), ("a", 3)]
    return env.from_collection(values).key_by(lambda x: Row(x[0])).reduce(lambda a, b: (a[0], a[1] + b[1]))


@recorded()
def key_tuple(env):
    """Untyped tuple keys."""
    values = [("a", 1, 1), ("b", 1, 2), ("a", 1, 3), ("a", 2, 4)]
    return env.from_collection(values).key_by(lambda x: (x[0], x[1])).reduce(lambda a, b: (*a[:2], a[2] + b[2]))


@recorded()
def key_tuple_typed(env):
    """Tuple keys of a declared type."""

    class Tell(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.INT()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            self.total.update((self.total.value() or 0) + value[2])
            yield ctx.get_current_key(), self.total.value()

    values = [("a", 1, 1), ("b", 1, 2), ("a", 1, 3), ("a", 2, 4)]
    keyed = env.from_collection(values).key_by(lambda x: (x[0], x[1]), Types.TUPLE([Types.STRING(), Types.INT()]))
    return keyed.process(Tell())


@recorded()
def key_zeros_and_nan(env):
    """0.0 and -0.0, and nan, as untyped keys, with another key in between."""
    nan = float("nan")
    values = [(0.0, "+0"), (5.0, ""), (-0.0, "-0"), (5.0, ""), (0.0, "+0"), (nan, "nan"), (5.0, ""), (nan, "nan")]
    return env.from_collection(values).key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


@recorded()
def key_zeros_and_nan_typed(env):
    """0.0 and -0.0, and nan, as keys of type DOUBLE, with another key in between."""
    nan = float("nan")
    values = [(0.0, "+0"), (5.0, ""), (-0.0, "-0"), (5.0, ""), (0.0, "+0"), (nan, "nan"), (5.0, ""), (nan, "nan")]
    keyed = env.from_collection(values).key_by(lambda pair: pair[0], Types.DOUBLE())
    return keyed.reduce(lambda a, b: (a[0], a[1] + b[1]))


@recorded(quirk="Both fields are collected as their pickled bytes.")
def keyed_collected(env):
    """execute_and_collect on an untyped keyed stream gives rows of key and value."""
    return env.from_collection([("a", 1), ("b", 2)]).key_by(lambda x: x[0])


@recorded()
def keyed_collected_typed(env):
    """The same with declared types."""
    typed = env.from_collection([("a", 1), ("b", 2)], Types.TUPLE([Types.STRING(), Types.INT()]))
    return typed.key_by(lambda x: x[0], Types.STRING())


@recorded()
def keyed_function_without_key(env):
    """A KeyedProcessFunction on a stream without keys."""

    class Tell(KeyedProcessFunction):

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            yield value

    return env.from_collection([1]).process(Tell())


@recorded()
def keyed_process_needs_keyed_function(env):
    """A keyed stream's process takes a KeyedProcessFunction only."""

    class Pass(ProcessFunction):

        def process_element(self, value, ctx: ProcessFunction.Context):
            yield value

    return env.from_collection([1]).key_by(lambda x: x).process(Pass())


@recorded()
def keyed_project(env):
    """project of a keyed stream sees the values."""
    typed = env.from_collection([("a", 1), ("b", 2)], Types.TUPLE([Types.STRING(), Types.INT()]))
    return typed.key_by(lambda x: x[0]).project(1)


@recorded()
def keyed_stateless(env):
    """map, flat_map and filter with plain functions on a keyed stream."""
    stream = env.from_collection(["b", "a", "b", "c"])
    stream = stream.key_by(lambda x: x).map(lambda x: x + "!")
    stream = stream.key_by(lambda x: x).flat_map(lambda x: [x, x])
    return stream.key_by(lambda x: x).filter(lambda x: x != "a!")


@recorded(result="facts")
def keyed_stream_refuses(env):
    """What a keyed stream cannot do, and what it says."""
    keyed = env.from_collection([1]).key_by(lambda x: x)
    calls = {
        "name": lambda: keyed.name("n"), "get_name": keyed.get_name, "uid": lambda: keyed.uid("u"),
        "set_parallelism": lambda: keyed.set_parallelism(1),
        "set_max_parallelism": lambda: keyed.set_max_parallelism(1),
        "shuffle": keyed.shuffle, "rebalance": keyed.rebalance, "rescale": keyed.rescale, "forward": keyed.forward,
        "broadcast": keyed.broadcast, "partition_custom": lambda: keyed.partition_custom(lambda k, n: 0, lambda x: x),
        "start_new_chain": keyed.start_new_chain, "disable_chaining": keyed.disable_chaining,
        "slot_sharing_group": lambda: keyed.slot_sharing_group("g"),
        "force_non_parallel": keyed.force_non_parallel, "set_buffer_timeout": lambda: keyed.set_buffer_timeout(1),
        "cache": keyed.cache,
    }
    return [(name, type(problem).__name__, str(problem))
            for name, call in calls.items() for problem in [problem_of(call)]]


@recorded(parallelism=2, ordered=False)
def keyed_two_subtasks(env):
    """Counts per key at parallelism 2."""

    class Count(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

        def map(self, value):
            count = (self.count.value() or 0) + 1
            self.count.update(count)
            return value, count

    return env.from_collection([f"k{i % 7}" for i in range(30)]).key_by(lambda x: x).map(Count())


@recorded(ordered=False)
def keyed_union(env):
    """A union of keyed streams holds their values and is not keyed."""
    left = env.from_collection([("a", 1), ("b", 2)]).key_by(lambda x: x[0])
    right = env.from_collection([("a", 3)]).key_by(lambda x: x[0])
    return left.union(right).map(lambda x: x)


@recorded(ordered=False)
def keyed_union_with_plain(env):
    """A plain stream united with a keyed one."""
    plain = env.from_collection([("a", 1), ("b", 2)])
    keyed = env.from_collection([("a", 3)]).key_by(lambda x: x[0])
    return plain.union(keyed).map(lambda x: x)


def problem_of(call):
    try:
        call()
    except Exception as problem:
        return problem
    return None
