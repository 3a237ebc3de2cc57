"""Rolling aggregates: reduce, sum, min, max, min_by and max_by."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor
from tests.recorded.family import recorded


@recorded()
def reduce_changing_type(env):
    """reduce on an untyped stream may change the type of its result."""
    values = [1, 2, 3]
    keyed = env.from_collection(values).key_by(lambda x: 0)
    return keyed.reduce(lambda a, b: [a, b] if isinstance(a, int) else [*a, b])


@recorded()
def reduce_lambda(env):
    """reduce gives the first record unchanged and then each new result."""
    values = [("a", 1), ("b", 2), ("a", 3), ("a", 4), ("b", 5)]
    return env.from_collection(values).key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


@recorded()
def reduce_to_none(env):
    """reduce to None."""
    return env.from_collection([1, 2, 3]).key_by(lambda x: 0).reduce(lambda a, b: None)


@recorded()
def reduce_typed(env):
    """reduce on a typed stream keeps its type, also where the function gives another kind of number."""
    typed = env.from_collection([("a", 1.0), ("a", 2.0)], Types.TUPLE([Types.STRING(), Types.DOUBLE()]))
    return typed.key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], int(a[1] + b[1])))


@recorded()
def reduce_typed_misfit(env):
    """reduce to a value that does not fit the stream's type."""
    typed = env.from_collection([("a", 1), ("a", 2)], Types.TUPLE([Types.STRING(), Types.INT()]))
    return typed.key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], "text"))


@recorded()
def rolling_basic(env):
    """Aggregates of plain values use position 0."""
    values = env.from_collection([3, 1, 4, 1, 5, 9, 2])
    return values.key_by(lambda x: x % 2).sum().key_by(lambda x: 0).max(0)


@recorded()
def rolling_basic_position(env):
    """A position other than 0 on plain values, two records of one key."""
    return env.from_collection([3, 1]).key_by(lambda x: 0).sum(1)


@recorded()
def rolling_basic_position_single(env):
    """A position other than 0 on plain values, while each key has one record."""
    return env.from_collection([3, 1]).key_by(lambda x: x).sum(1)


@recorded()
def rolling_bools(env):
    """sum of bools."""
    return env.from_collection([("a", True), ("a", True), ("a", False)]).key_by(lambda x: x[0]).sum(1)


@recorded()
def rolling_by_name(env):
    """Aggregates of named rows by field name."""
    types = Types.ROW_NAMED(["key", "value", "at"], [Types.STRING(), Types.INT(), Types.INT()])
    values = [("a", 3, 1), ("b", 9, 2), ("a", 1, 3), ("a", 2, 4)]
    rows = env.from_collection(values, types)
    summed = rows.key_by(lambda x: x["key"]).sum("value")
    return summed.key_by(lambda x: x.key).min_by("at")


@recorded()
def rolling_dicts(env):
    """sum of a field of dict records."""
    return env.from_collection([{"k": "a", "v": 1}, {"k": "a", "v": 2}]).key_by(lambda x: x["k"]).sum("v")


@recorded()
def rolling_lists(env):
    """sum of a field of list records."""
    return env.from_collection([["a", 1], ["a", 2], ["a", 3]]).key_by(lambda x: x[0]).sum(1)


@recorded()
def rolling_max_by_rows(env):
    """max_by on typed rows, by position."""
    types = Types.ROW([Types.STRING(), Types.INT(), Types.INT()])
    values = [("a", 3, 1), ("b", 9, 2), ("a", 1, 3), ("a", 2, 4), ("a", 1, 5)]
    return env.from_collection(values, types).key_by(lambda x: x[0]).max_by(1)


@recorded()
def rolling_max_by_tuples(env):
    """max_by on tuples, one result for each record."""
    values = [("a", 3, 1), ("b", 9, 2), ("a", 1, 3), ("a", 2, 4), ("a", 1, 5), ("a", 9, 6), ("a", 9, 7)]
    return env.from_collection(values).key_by(lambda x: x[0]).max_by(1)


@recorded()
def rolling_max_rows(env):
    """max on typed rows, by position."""
    types = Types.ROW([Types.STRING(), Types.INT(), Types.INT()])
    values = [("a", 3, 1), ("b", 9, 2), ("a", 1, 3), ("a", 2, 4), ("a", 1, 5)]
    return env.from_collection(values, types).key_by(lambda x: x[0]).max(1)


@recorded()
def rolling_max_tuples(env):
    """max on tuples, one result for each record."""
    values = [("a", 3, 1), ("b", 9, 2), ("a", 1, 3), ("a", 2, 4), ("a", 1, 5), ("a", 9, 6), ("a", 9, 7)]
    return env.from_collection(values).key_by(lambda x: x[0]).max(1)


@recorded()
def rolling_min_basic(env):
    """min and max_by of plain values."""
    values = env.from_collection([3, 1, 4, 1, 5, 9, 2])
    return values.key_by(lambda x: x % 2).min().key_by(lambda x: x % 2).max_by()


@recorded()
def rolling_min_by_name(env):
    """min of named rows by field name."""
    types = Types.ROW_NAMED(["key", "value", "at"], [Types.STRING(), Types.INT(), Types.INT()])
    values = [("a", 3, 1), ("b", 9, 2), ("a", 1, 3), ("a", 2, 4)]
    return env.from_collection(values, types).key_by(lambda x: x["key"]).min("value")


@recorded()
def rolling_min_by_rows(env):
    """min_by on typed rows, by position."""
    types = Types.ROW([Types.STRING(), Types.INT(), Types.INT()])
    values = [("a", 3, 1), ("b", 9, 2), ("a", 1, 3), ("a", 2, 4), ("a", 1, 5)]
    return env.from_collection(values, types).key_by(lambda x: x[0]).min_by(1)


@recorded()
def rolling_min_by_tuples(env):
    """min_by on tuples, one result for each record."""
    values = [("a", 3, 1), ("b", 9, 2), ("a", 1, 3), ("a", 2, 4), ("a", 1, 5), ("a", 9, 6), ("a", 9, 7)]
    return env.from_collection(values).key_by(lambda x: x[0]).min_by(1)


@recorded()
def rolling_min_misfit(env):
    """min of values without an order."""
    return env.from_collection([("a", 1), ("a", None)]).key_by(lambda x: x[0]).min(1)


@recorded()
def rolling_min_rows(env):
    """min on typed rows, by position."""
    types = Types.ROW([Types.STRING(), Types.INT(), Types.INT()])
    values = [("a", 3, 1), ("b", 9, 2), ("a", 1, 3), ("a", 2, 4), ("a", 1, 5)]
    return env.from_collection(values, types).key_by(lambda x: x[0]).min(1)


@recorded()
def rolling_min_strings(env):
    """min and max of strings."""
    values = [("a", "m"), ("a", "b"), ("a", "z")]
    return env.from_collection(values).key_by(lambda x: x[0]).min(1).key_by(lambda x: x[0]).max(1)


@recorded()
def rolling_min_tuples(env):
    """min on tuples, one result for each record."""
    values = [("a", 3, 1), ("b", 9, 2), ("a", 1, 3), ("a", 2, 4), ("a", 1, 5), ("a", 9, 6), ("a", 9, 7)]
    return env.from_collection(values).key_by(lambda x: x[0]).min(1)


@recorded()
def rolling_name_on_tuple(env):
    """A field name on tuples."""
    return env.from_collection([("a", 1), ("a", 2)]).key_by(lambda x: x[0]).sum("f1")


@recorded()
def rolling_name_on_unnamed_rows(env):
    """The names f0, f1 on rows without names."""
    rows = env.from_collection([("a", 1), ("a", 2)], Types.ROW([Types.STRING(), Types.INT()]))
    return rows.key_by(lambda x: x[0]).sum("f1")


@recorded()
def rolling_negative_position(env):
    """A position counted from the end."""
    return env.from_collection([("a", 1), ("a", 2)]).key_by(lambda x: x[0]).sum(-1)


@recorded()
def rolling_out_of_range(env):
    """A position that does not exist."""
    return env.from_collection([("a", 1), ("a", 2)]).key_by(lambda x: x[0]).sum(5)


@recorded()
def rolling_position_of_wrong_kind(env):
    """A position that is neither int nor str."""
    return env.from_collection([("a", 1), ("a", 2)]).key_by(lambda x: x[0]).sum(1.0)


@recorded()
def rolling_sum_misfit(env):
    """sum of a number and a string."""
    return env.from_collection([("a", 1), ("a", "y")]).key_by(lambda x: x[0]).sum(1)


@recorded()
def rolling_sum_rows(env):
    """sum on typed rows, by position."""
    types = Types.ROW([Types.STRING(), Types.INT(), Types.INT()])
    values = [("a", 3, 1), ("b", 9, 2), ("a", 1, 3), ("a", 2, 4), ("a", 1, 5)]
    return env.from_collection(values, types).key_by(lambda x: x[0]).sum(1)


@recorded()
def rolling_sum_strings(env):
    """sum of strings."""
    return env.from_collection([("a", "x"), ("a", "y"), ("a", "z")]).key_by(lambda x: x[0]).sum(1)


@recorded()
def rolling_sum_too_large(env):
    """A sum that leaves the declared type."""
    typed = env.from_collection([("a", 2 ** 31 - 1), ("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()]))
    return typed.key_by(lambda x: x[0]).sum(1)


@recorded()
def rolling_sum_tuples(env):
    """sum on tuples, one result for each record."""
    values = [("a", 3, 1), ("b", 9, 2), ("a", 1, 3), ("a", 2, 4), ("a", 1, 5), ("a", 9, 6), ("a", 9, 7)]
    return env.from_collection(values).key_by(lambda x: x[0]).sum(1)


@recorded()
def rolling_typed_tuples(env):
    """sum of a DOUBLE field of typed tuples."""
    typed = env.from_collection([("a", 1.5), ("a", 2.0), ("b", 0.1)], Types.TUPLE([Types.STRING(), Types.DOUBLE()]))
    return typed.key_by(lambda x: x[0]).sum(1)


@recorded()
def workload_keyed_count(env):
    """Benchmark workload: a count per key."""

    class Count(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            count = (self.count.value() or 0) + 1
            self.count.update(count)
            yield value[0], count

    pairs = env.from_collection([(f"user_{i * 7919 % 100}", i) for i in range(2000)])
    return pairs.key_by(lambda pair: pair[0]).process(Count())


@recorded()
def workload_rolling_reduce(env):
    """Benchmark workload: a rolling sum per key."""
    pairs = env.from_collection([(f"user_{i * 7919 % 100}", i) for i in range(2000)])
    return pairs.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


@recorded()
def workload_stateless_chain(env):
    """Benchmark workload: map, filter, map, flat_map."""
    return (env.from_collection(list(range(2000)))
            .map(lambda i: (f"user_{i * 7919 % 100}", i))
            .filter(lambda pair: pair[1] % 2 == 0)
            .map(lambda pair: (pair[0], pair[1] * 3))
            .flat_map(lambda pair: [pair, (pair[0], -pair[1])]))
