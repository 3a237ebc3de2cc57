"""Two connected streams."""

from pyflink.common import Row, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    ProcessFunction,
    RuntimeContext,
)
from pyflink.datastream.state import ListStateDescriptor, ValueStateDescriptor
from tests.recorded.family import recorded


class Both(CoMapFunction):
    def map1(self, value):
        return 1, value

    def map2(self, value):
        return 2, value


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def timed(env, values):
    return env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )


@recorded(mode="BATCH", ordered=False)
def connect_batch(env):
    """Connected streams without keys in a batch job."""
    return env.from_collection([1, 2, 3]).connect(env.from_collection(["a", "b"])).map(Both())


@recorded(ordered=False)
def connect_chained_maps(env):
    """Plain functions before and behind connected streams."""

    class Both(CoMapFunction):
        def map1(self, value):
            return value + 1

        def map2(self, value):
            return -value

    left = env.from_collection([1, 2, 3]).map(lambda value: value * 10).filter(lambda value: value != 20)
    right = env.from_collection(["a", "bb"]).map(len)
    both = left.connect(right).map(Both())
    return both.map(lambda value: ("result", value)).flat_map(lambda value: [value, value])


@recorded()
def connect_empty_side(env):
    """A side without records."""

    class Both(CoMapFunction):
        def map1(self, value):
            return "first", value

        def map2(self, value):
            return "second", value

    nothing = env.from_collection([1]).filter(lambda value: False)
    return nothing.connect(env.from_collection(["a", "b", "c"])).map(Both())


@recorded(ordered=False)
def connect_flat_map(env):
    """A co-flat-map gives any number of records per record."""

    class Both(CoFlatMapFunction):
        def flat_map1(self, value):
            for n in range(value):
                yield value, n

        def flat_map2(self, value):
            return list(value)

    return env.from_collection([0, 1, 3]).connect(env.from_collection(["", "ab", "c"])).flat_map(Both())


@recorded()
def connect_flat_map_lambda(env):
    """A co-flat-map is a function of its own kind: a co-map is none."""

    class Both(CoMapFunction):
        def map1(self, value):
            return value

        def map2(self, value):
            return value

    return env.from_collection([1]).connect(env.from_collection(["a"])).flat_map(Both())


@recorded(ordered=False)
def connect_flat_map_none(env):
    """A co-flat-map may return None for no records."""

    class Both(CoFlatMapFunction):
        def flat_map1(self, value):
            if value > 1:
                return (value, -value)
            return None

        def flat_map2(self, value):
            return []

    return env.from_collection([0, 1, 2, 3]).connect(env.from_collection(["ab", "c"])).flat_map(Both())


@recorded(ordered=False)
def connect_map(env):
    """Each side of connected streams has its own map; the types may differ."""

    class Both(CoMapFunction):
        def map1(self, value):
            return "number", value * 10

        def map2(self, value):
            return "word", value.upper()

    numbers = env.from_collection([1, 2, 3], Types.INT())
    words = env.from_collection(["a", "b"], Types.STRING())
    return numbers.connect(words).map(Both())


@recorded()
def connect_map_lambda(env):
    """A co-map is a function of its own kind: a lambda is none."""
    return env.from_collection([1]).connect(env.from_collection(["a"])).map(lambda value: value)


@recorded(ordered=False)
def connect_map_misfit(env):
    """A co-map's result that is not of the declared type."""

    class Both(CoMapFunction):
        def map1(self, value):
            return value

        def map2(self, value):
            return value

    return env.from_collection([1, 2, 3]).connect(env.from_collection(["a"])).map(Both(), Types.INT())


@recorded(ordered=False)
def connect_map_none(env):
    """A co-map that returns None gives no record."""

    class Both(CoMapFunction):
        def map1(self, value):
            return value if value % 2 else None

        def map2(self, value):
            return None

    return env.from_collection([1, 2, 3, 4]).connect(env.from_collection(["a", "b"])).map(Both())


@recorded()
def connect_map_raises(env):
    """One side of a co-map raises."""

    class Both(CoMapFunction):
        def map1(self, value):
            return value

        def map2(self, value):
            raise ValueError("no words here")

    return env.from_collection([1, 2, 3]).connect(env.from_collection(["a"])).map(Both())


@recorded(ordered=False)
def connect_map_typed(env):
    """A declared type of a co-map's results."""

    class Both(CoMapFunction):
        def map1(self, value):
            return Row(value, str(value))

        def map2(self, value):
            return Row(len(value), value)

    connected = env.from_collection([1, 2, 3]).connect(env.from_collection(["xx", "y"]))
    rows = connected.map(Both(), Types.ROW_NAMED(["number", "text"], [Types.INT(), Types.STRING()]))
    return rows.rebalance().map(lambda row: (row.number, row.text, str(row)))


@recorded(result="facts")
def connect_names(env):
    """Names that operators of connected streams have by default."""

    class Map(CoMapFunction):
        def map1(self, value):
            return value

        map2 = map1

    class FlatMap(CoFlatMapFunction):
        def flat_map1(self, value):
            yield value

        flat_map2 = flat_map1

    class Process(CoProcessFunction):
        def process_element1(self, value, ctx: CoProcessFunction.Context):
            yield value

        process_element2 = process_element1

    class KeyedProcess(KeyedCoProcessFunction):
        def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
            yield value

        process_element2 = process_element1

    plain = env.from_collection([1]).connect(env.from_collection([2]))
    keyed = plain.key_by(lambda value: value, lambda value: value)
    return [
        stream.get_name()
        for stream in (plain.map(Map()), plain.flat_map(FlatMap()), plain.process(Process()),
                       keyed.map(Map()), keyed.flat_map(FlatMap()), keyed.process(KeyedProcess()))
    ]


@recorded(ordered=False)
def connect_one_side_keyed(env):
    """One side is keyed and the other is not: there are no keys for the function."""

    class Join(CoFlatMapFunction):
        def open(self, runtime_context: RuntimeContext):
            self.left = runtime_context.get_list_state(ListStateDescriptor("left", Types.INT()))
            self.right = runtime_context.get_list_state(ListStateDescriptor("right", Types.STRING()))

        def flat_map1(self, value):
            self.left.add(value[1])
            return [(value[0], value[1], word) for word in self.right.get()]

        def flat_map2(self, value):
            self.right.add(value[1])
            return [(value[0], number, value[1]) for number in self.left.get()]

    LEFT = [("a", 1), ("b", 2), ("a", 3), ("c", 4), ("b", 5), ("a", 6)]
    RIGHT = [("b", "x"), ("a", "y"), ("d", "z"), ("a", "w")]

    left = env.from_collection(LEFT).key_by(lambda value: value[0])
    return left.connect(env.from_collection(RIGHT)).flat_map(Join())


@recorded(ordered=False, quirk="Records of the keyed side come with their keys, as PyFlink sends them over its wire.")
def connect_one_side_keyed_map(env):
    """One side is keyed and the other is not, and no state is used."""
    left = env.from_collection([("a", 1), ("b", 2)]).key_by(lambda value: value[0])
    return left.connect(env.from_collection(["x", "y"])).map(Both())


@recorded(ordered=False)
def connect_open_and_close(env):
    """The function of connected streams is opened before its first record, with its subtask's context."""

    class Opened(CoMapFunction):
        def __init__(self):
            self.context = None

        def open(self, runtime_context: RuntimeContext):
            self.context = (runtime_context.get_index_of_this_subtask(),
                            runtime_context.get_number_of_parallel_subtasks(),
                            runtime_context.get_attempt_number())

        def map1(self, value):
            return 1, value, self.context

        def map2(self, value):
            return 2, value, self.context

    return env.from_collection([1, 2]).connect(env.from_collection(["a", "b"])).map(Opened())


@recorded(ordered=False)
def connect_order_within_side(env):
    """The order within each side stays."""

    class Both(CoFlatMapFunction):
        """Records carry what their side had seen so far."""

        def open(self, runtime_context: RuntimeContext):
            self.seen1, self.seen2 = [], []

        def flat_map1(self, value):
            self.seen1.append(value)
            yield 1, tuple(self.seen1)

        def flat_map2(self, value):
            self.seen2.append(value)
            yield 2, tuple(self.seen2)

    return env.from_collection([5, 3, 4, 1]).connect(env.from_collection(["c", "a", "b"])).flat_map(Both())


@recorded(ordered=False)
def connect_plain_function_with_keys(env):
    """A co-process function without keys on keyed streams."""

    class Both(CoProcessFunction):
        def process_element1(self, value, ctx: CoProcessFunction.Context):
            yield 1, value

        def process_element2(self, value, ctx: CoProcessFunction.Context):
            yield 2, value

    keyed = env.from_collection([1, 2]).connect(env.from_collection(["a"])).key_by(lambda v: v, lambda v: v)
    return keyed.process(Both())


@recorded(ordered=False, result="stdout")
def connect_print(env):
    """What connected streams give is printed like anything else."""

    class Both(CoMapFunction):
        def map1(self, value):
            return value * 2

        def map2(self, value):
            return len(value)

    env.from_collection([1, 2]).connect(env.from_collection(["a", "bbb"])).map(Both(), Types.LONG()).print("both")


@recorded(ordered=False)
def connect_process(env):
    """A co-process function sees each record's timestamp and the watermark before any."""

    class Both(CoProcessFunction):
        def process_element1(self, value, ctx: CoProcessFunction.Context):
            yield 1, value, ctx.timestamp(), ctx.timer_service().current_watermark()

        def process_element2(self, value, ctx: CoProcessFunction.Context):
            yield 2, value, ctx.timestamp(), ctx.timer_service().current_watermark()

    left = timed(env, [("a", 5), ("b", 3), ("c", 8)])
    right = timed(env, [("x", 7), ("y", 1)])
    return left.connect(right).process(Both())


@recorded()
def connect_process_state(env):
    """Without keys there is no keyed state in a co-process function."""

    class Both(CoProcessFunction):
        def open(self, runtime_context: RuntimeContext):
            self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

        def process_element1(self, value, ctx: CoProcessFunction.Context):
            self.count.update(value)
            yield value

        def process_element2(self, value, ctx: CoProcessFunction.Context):
            yield value

    return env.from_collection([1, 2]).connect(env.from_collection(["a"])).process(Both())


@recorded()
def connect_process_timer(env):
    """Without keys there are no timers in a co-process function."""

    class Both(CoProcessFunction):
        def process_element1(self, value, ctx: CoProcessFunction.Context):
            ctx.timer_service().register_event_time_timer(10)

        def process_element2(self, value, ctx: CoProcessFunction.Context):
            yield value

    return env.from_collection([1, 2]).connect(env.from_collection(["a"])).process(Both())


@recorded()
def connect_process_wrong_kind(env):
    """Connected streams take co-process functions, and no others."""

    class Alone(ProcessFunction):
        def process_element(self, value, ctx: ProcessFunction.Context):
            yield value

    return env.from_collection([1]).connect(env.from_collection(["a"])).process(Alone())


@recorded(ordered=False)
def connect_processing_timers_end(env):
    """Processing-time timers of connected streams that are open at the end do not fire."""

    class Timed(KeyedCoProcessFunction):
        def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
            ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 10**9)
            yield 1, value

        def process_element2(self, value, ctx: KeyedCoProcessFunction.Context):
            ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 10**9)
            yield 2, value

        def on_timer(self, timestamp, ctx: KeyedCoProcessFunction.OnTimerContext):
            yield "fired"

    connected = env.from_collection([1, 2, 3]).connect(env.from_collection([1, 2]))
    return connected.key_by(lambda value: value, lambda value: value).process(Timed())


@recorded(ordered=False)
def connect_shared_attributes(env):
    """Both sides are methods of one object in a subtask: every pair meets once."""

    class Pairs(CoFlatMapFunction):
        def open(self, runtime_context: RuntimeContext):
            self.numbers, self.words = [], []

        def flat_map1(self, value):
            self.numbers.append(value)
            return [(value, word) for word in self.words]

        def flat_map2(self, value):
            self.words.append(value)
            return [(number, value) for number in self.numbers]

    return env.from_collection([1, 2, 3]).connect(env.from_collection(["a", "b"])).flat_map(Pairs())


@recorded(ordered=False)
def connect_side_output(env):
    """Both sides of a co-process function emit to side outputs."""

    ODD = OutputTag("odd", Types.TUPLE([Types.STRING(), Types.INT()]))

    class Both(CoProcessFunction):
        def process_element1(self, value, ctx: CoProcessFunction.Context):
            if value % 2:
                yield ODD, ("first", value)
            else:
                yield value

        def process_element2(self, value, ctx: CoProcessFunction.Context):
            if len(value) % 2:
                yield ODD, ("second", len(value))
            else:
                yield value

    main = env.from_collection([1, 2, 3, 4]).connect(env.from_collection(["a", "bb", "ccc"])).process(Both())
    return main.get_side_output(ODD)


@recorded(ordered=False)
def connect_side_output_main(env):
    """What is tagged in a co-process function is not in its main output."""

    ODD = OutputTag("odd", Types.STRING())

    class Both(CoProcessFunction):
        def process_element1(self, value, ctx: CoProcessFunction.Context):
            yield (ODD, str(value)) if value % 2 else value

        def process_element2(self, value, ctx: CoProcessFunction.Context):
            yield ODD, value
            yield len(value)

    main = env.from_collection([1, 2, 3, 4]).connect(env.from_collection(["a", "bb", "ccc"])).process(Both())
    sides = main.get_side_output(ODD)
    return main.map(lambda value: f"main {value}").union(sides.map(lambda value: f"side {value}"))


@recorded(ordered=False)
def connect_then_connect(env):
    """Connected streams, connected again."""

    class Both(CoMapFunction):
        def __init__(self, name):
            self.name = name

        def map1(self, value):
            return f"{self.name}1({value})"

        def map2(self, value):
            return f"{self.name}2({value})"

    first = env.from_collection([1, 2]).connect(env.from_collection(["a"])).map(Both("f"), Types.STRING())
    second = first.connect(env.from_collection([0.5])).map(Both("s"), Types.STRING())
    return first.connect(second).map(Both("t"), Types.STRING())


@recorded(ordered=False)
def connect_union_on_a_side(env):
    """A side of connected streams may be a union."""

    class Both(CoMapFunction):
        def map1(self, value):
            return "first", value

        def map2(self, value):
            return "second", value

    left = env.from_collection([1, 2]).union(env.from_collection([3]), env.from_collection([4, 5]))
    right = env.from_collection(["a"]).union(env.from_collection(["b"]))
    return left.connect(right).map(Both())


@recorded(ordered=False)
def connect_with_itself(env):
    """A stream connected with itself comes in on both sides."""
    stream = env.from_collection([1, 2, 3]).map(lambda value: value * value)
    return stream.connect(stream).map(Both())
