"""Keyed state: value, reducing and aggregating state, and where state may be used."""

from pyflink.common import Types
from pyflink.datastream.functions import (
    AggregateFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ReduceFunction,
    RuntimeContext,
)
from pyflink.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from tests.recorded.family import recorded


@recorded()
def state_acquired_late(env):
    """A state may be acquired while a record is processed."""

    class Late(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.context = runtime_context

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            count = self.context.get_state(ValueStateDescriptor("count", Types.LONG()))
            count.update((count.value() or 0) + 1)
            yield value, count.value()

    return env.from_collection(["a", "b", "a"]).key_by(lambda x: x).process(Late())


@recorded()
def state_aggregating(env):
    """Aggregating state: absent, added to, cleared; its result differs from its accumulator."""

    class Average(AggregateFunction):

        def create_accumulator(self):
            return 0, 0

        def add(self, value, accumulator):
            return accumulator[0] + 1, accumulator[1] + value

        def get_result(self, accumulator):
            return accumulator[1] / accumulator[0]

        def merge(self, a, b):
            return a[0] + b[0], a[1] + b[1]

    class Steps(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            descriptor = AggregatingStateDescriptor("state", Average(), Types.TUPLE([Types.INT(), Types.INT()]))
            self.state = runtime_context.get_aggregating_state(descriptor)

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            before = self.state.get()
            if value is None:
                self.state.clear()
            else:
                self.state.add(value)
            yield before, value, self.state.get()

    return env.from_collection([1, 2, 6, None, 4, None, None, 5]).key_by(lambda x: 0).process(Steps())


@recorded()
def state_aggregating_mutable(env):
    """An accumulator that is changed in place."""

    class Collect(AggregateFunction):

        def create_accumulator(self):
            return []

        def add(self, value, accumulator):
            accumulator.append(value)
            return accumulator

        def get_result(self, accumulator):
            return list(accumulator)

        def merge(self, a, b):
            return a + b

    class Steps(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            descriptor = AggregatingStateDescriptor("state", Collect(), Types.PICKLED_BYTE_ARRAY())
            self.state = runtime_context.get_aggregating_state(descriptor)

        def map(self, value):
            self.state.add(value[1])
            return value[0], self.state.get()

    values = [("a", 1), ("b", 2), ("a", 3), ("b", 4), ("a", 5)]
    return env.from_collection(values).key_by(lambda x: x[0]).map(Steps())


@recorded()
def state_in_filter(env):
    """Value state in a FilterFunction: the first record of each key."""

    class First(FilterFunction):

        def open(self, runtime_context: RuntimeContext):
            self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.BOOLEAN()))

        def filter(self, value):
            first = not self.seen.value()
            self.seen.update(True)
            return first

    return env.from_collection(["a", "b", "a", "c", "b"]).key_by(lambda x: x).filter(First())


@recorded()
def state_in_flat_map(env):
    """Value state in a FlatMapFunction."""

    class Repeat(FlatMapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.times = runtime_context.get_state(ValueStateDescriptor("times", Types.INT()))

        def flat_map(self, value):
            times = (self.times.value() or 0) + 1
            self.times.update(times)
            for n in range(times):
                yield value, n

    return env.from_collection(["a", "b", "a"]).key_by(lambda x: x).flat_map(Repeat())


@recorded()
def state_in_map(env):
    """Value state in a MapFunction."""

    class Previous(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.previous = runtime_context.get_state(ValueStateDescriptor("previous", Types.PICKLED_BYTE_ARRAY()))

        def map(self, value):
            before = self.previous.value()
            self.previous.update(value)
            return before, value

    return env.from_collection([("a", 1), ("b", 2), ("a", 3)]).key_by(lambda x: x[0]).map(Previous())


@recorded()
def state_in_open(env):
    """State cannot be read in open, where there is no key."""

    class Early(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            state = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
            self.early = state.value()

        def map(self, value):
            return self.early

    return env.from_collection(["a"]).key_by(lambda x: x).map(Early())


@recorded()
def state_in_reduce(env):
    """A ReduceFunction may keep keyed state of its own."""

    class Summing(ReduceFunction):

        def open(self, runtime_context: RuntimeContext):
            self.calls = runtime_context.get_state(ValueStateDescriptor("calls", Types.INT()))

        def reduce(self, value1, value2):
            calls = (self.calls.value() or 0) + 1
            self.calls.update(calls)
            return value1[0], value1[1] + value2[1], calls

    values = [("a", 1, 0), ("a", 2, 0), ("b", 5, 0), ("a", 3, 0), ("b", 6, 0)]
    return env.from_collection(values).key_by(lambda x: x[0]).reduce(Summing())


@recorded()
def state_map(env):
    """Map state: absent, put, put_all, removed, the last entry removed, cleared."""

    class Steps(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_map_state(MapStateDescriptor("state", Types.STRING(), Types.INT()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            step, *arguments = value
            getattr(self.state, step)(*arguments)
            yield (step, sorted(self.state.keys()), sorted(self.state.values()), sorted(self.state.items()),
                   self.state.get("a"), self.state.contains("a"))

    steps = [("contains", "a"), ("put", "a", 1), ("put", "b", 2), ("put", "a", 3), ("remove", "b"), ("remove", "b"),
             ("remove", "a"), ("put_all", [("c", 4), ("a", 5)]), ("put_all", []), ("clear",), ("remove", "a"),
             ("put", "d", 0)]
    return env.from_collection(steps).key_by(lambda x: 0).process(Steps())


@recorded()
def state_reducing(env):
    """Reducing state: absent, added to, cleared."""

    class Steps(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            descriptor = ReducingStateDescriptor("state", lambda a, b: a * 10 + b, Types.INT())
            self.state = runtime_context.get_reducing_state(descriptor)

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            before = self.state.get()
            if value is None:
                self.state.clear()
            else:
                self.state.add(value)
            yield before, value, self.state.get()

    return env.from_collection([1, 2, 3, None, 4, None, None, 5]).key_by(lambda x: 0).process(Steps())


@recorded()
def state_reducing_function(env):
    """A ReduceFunction in a reducing state."""

    class Longest(ReduceFunction):

        def reduce(self, value1, value2):
            return max(value1, value2, key=len)

    class Steps(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_reducing_state(ReducingStateDescriptor("state", Longest(), Types.STRING()))

        def map(self, value):
            self.state.add(value[1])
            return value[0], self.state.get()

    values = [("a", "xx"), ("b", "y"), ("a", "z"), ("b", "yyy"), ("a", "wwww")]
    return env.from_collection(values).key_by(lambda x: x[0]).map(Steps())


@recorded()
def state_reducing_to_none(env):
    """A reduce function that gives None inside a reducing state."""

    class Steps(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            descriptor = ReducingStateDescriptor("state", lambda a, b: None if b == 2 else a + b, Types.INT())
            self.state = runtime_context.get_reducing_state(descriptor)

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            self.state.add(value)
            yield value, self.state.get()

    return env.from_collection([1, 2, 3, 4]).key_by(lambda x: 0).process(Steps())


@recorded()
def state_same_name_other_kind(env):
    """One name for two kinds of state."""

    class Twice(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.first = runtime_context.get_state(ValueStateDescriptor("state", Types.LONG()))
            self.second = runtime_context.get_list_state(ListStateDescriptor("state", Types.LONG()))

        def map(self, value):
            return value

    return env.from_collection(["a"]).key_by(lambda x: x).map(Twice())


@recorded()
def state_same_name_other_type(env):
    """One name for two types of value state."""

    class Twice(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.first = runtime_context.get_state(ValueStateDescriptor("state", Types.LONG()))
            self.second = runtime_context.get_state(ValueStateDescriptor("state", Types.STRING()))

        def map(self, value):
            return value

    return env.from_collection(["a"]).key_by(lambda x: x).map(Twice())


@recorded()
def state_same_name_twice(env):
    """Two descriptors of one name give one state."""

    class Twice(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.first = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
            self.second = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

        def map(self, value):
            self.first.update((self.second.value() or 0) + 1)
            return value, self.first.value(), self.second.value()

    return env.from_collection(["a", "a"]).key_by(lambda x: x).map(Twice())


@recorded()
def state_several(env):
    """Several states in one function."""

    class Several(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))
            self.values = runtime_context.get_list_state(ListStateDescriptor("values", Types.INT()))
            self.by_parity = runtime_context.get_map_state(MapStateDescriptor("parity", Types.INT(), Types.INT()))
            self.total = runtime_context.get_reducing_state(
                ReducingStateDescriptor("total", lambda a, b: a + b, Types.INT()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            key, number = value
            self.count.update((self.count.value() or 0) + 1)
            self.values.add(number)
            self.by_parity.put(number % 2, number)
            self.total.add(number)
            yield key, self.count.value(), list(self.values.get()), sorted(self.by_parity.items()), self.total.get()

    values = [("a", 1), ("b", 2), ("a", 2), ("a", 3), ("b", 5), ("c", 0)]
    return env.from_collection(values).key_by(lambda x: x[0]).process(Several())


@recorded()
def state_value(env):
    """Value state: absent, set, cleared, set to None."""

    class Steps(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_state(ValueStateDescriptor("state", Types.STRING()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            yield "before", value, self.state.value()
            if value[1] == "clear":
                self.state.clear()
            else:
                self.state.update(value[1])
            yield "after", value, self.state.value()

    steps = [("a", "x"), ("a", "y"), ("b", "z"), ("a", "clear"), ("a", "clear"), ("a", ""), ("b", "clear"), ("b", "w")]
    return env.from_collection(steps).key_by(lambda x: x[0]).process(Steps())


@recorded()
def state_value_conversion(env):
    """What a typed value state gives back right after an update."""

    class Store(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.number = runtime_context.get_state(ValueStateDescriptor("number", Types.DOUBLE()))
            self.short = runtime_context.get_state(ValueStateDescriptor("short", Types.FLOAT()))

        def map(self, value):
            self.number.update(1)
            self.short.update(1.1)
            return self.number.value(), self.short.value()

    return env.from_collection(["a"]).key_by(lambda x: x).map(Store())


@recorded()
def state_value_misfit(env):
    """A value that is not of the state's type."""

    class Store(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_state(ValueStateDescriptor("state", Types.INT()))

        def map(self, value):
            self.state.update("text")
            return self.state.value()

    return env.from_collection(["a", "a"]).key_by(lambda x: x).map(Store())


@recorded()
def state_value_none(env):
    """Updating a value state with None."""

    class Steps(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_state(ValueStateDescriptor("state", Types.STRING()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            before = self.state.value()
            self.state.update(value)
            yield before, value, self.state.value()

    return env.from_collection(["x", None, "y"]).key_by(lambda x: 0).process(Steps())


@recorded()
def state_value_none_pickled(env):
    """Updating a pickled value state with None."""

    class Steps(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.state = runtime_context.get_state(ValueStateDescriptor("state", Types.PICKLED_BYTE_ARRAY()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            before = self.state.value()
            self.state.update(value)
            yield before, value, self.state.value()

    return env.from_collection(["x", None, "y"]).key_by(lambda x: 0).process(Steps())


@recorded()
def state_value_tuple(env):
    """A value state of a tuple type."""

    class Average(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            descriptor = ValueStateDescriptor("sum", Types.TUPLE([Types.LONG(), Types.LONG()]))
            self.sum = runtime_context.get_state(descriptor)

        def map(self, value):
            count, total = self.sum.value() or (0, 0)
            self.sum.update((count + 1, total + value[1]))
            return value[0], self.sum.value()

    return env.from_collection([("a", 1), ("a", 3), ("b", 5), ("a", 2)]).key_by(lambda x: x[0]).map(Average())


@recorded()
def state_without_key(env):
    """State needs a keyed stream."""

    class Stateful(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

        def map(self, value):
            return value

    return env.from_collection([1]).map(Stateful())
