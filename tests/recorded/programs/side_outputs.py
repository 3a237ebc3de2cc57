"""Side outputs."""

from pyflink.common import Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import (
    KeyedProcessFunction,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
)
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.datastream.window import TumblingEventTimeWindows
from tests.recorded.family import recorded

ODD = OutputTag("odd", Types.INT())


class Split(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        if value % 2:
            yield ODD, value
        else:
            yield value


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def timed(env, values):
    return env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )


@recorded()
def side_output_behind_a_map(env):
    """A side output is asked of the function that emits it: behind a map there is none."""
    split = env.from_collection([1, 2, 3, 4]).process(Split())
    split.get_side_output(ODD)
    return split.map(lambda value: value).get_side_output(ODD)


@recorded(result="facts")
def side_output_empty_id(env):
    """A tag has an id."""
    return [OutputTag("").tag_id]


@recorded()
def side_output_from_keyed(env):
    """Side outputs of a keyed function."""

    EVERY_SECOND = OutputTag("second", Types.TUPLE([Types.STRING(), Types.INT()]))

    class Counting(KeyedProcessFunction):

        def open(self, runtime_context: RuntimeContext):
            self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            count = (self.count.value() or 0) + 1
            self.count.update(count)
            yield value
            if count % 2 == 0:
                yield EVERY_SECOND, (ctx.get_current_key(), count)

    main = env.from_collection(list("abaabb")).key_by(lambda x: x).process(Counting())
    return main.get_side_output(EVERY_SECOND)


@recorded(result="facts")
def side_output_id_none(env):
    """A tag's id is not None."""
    return [OutputTag(None).tag_id]


@recorded()
def side_output_id_of_other_type(env):
    """Two tags of one id and of different types."""

    NUMBERS = OutputTag("odd", Types.INT())
    WORDS = OutputTag("odd", Types.STRING())

    class Split(ProcessFunction):
        def process_element(self, value, ctx: ProcessFunction.Context):
            yield NUMBERS, value

    split = env.from_collection([1, 2, 3, 4]).process(Split())
    return split.get_side_output(NUMBERS).map(str).union(split.get_side_output(WORDS).map(str))


@recorded(parallelism=2, ordered=False)
def side_output_in_two_subtasks(env):
    """A side output of two subtasks holds the records of both."""
    split = env.from_collection(list(range(9))).rebalance().process(Split())
    return split.get_side_output(ODD).map(lambda value: -value).union(split)


@recorded()
def side_output_keyed_and_summed(env):
    """A side output is keyed and summed."""

    WORDS = OutputTag("words", Types.TUPLE([Types.STRING(), Types.INT()]))

    class Split(ProcessFunction):
        def process_element(self, value, ctx: ProcessFunction.Context):
            for word in value.split():
                yield WORDS, (word, 1)
            yield len(value)

    words = env.from_collection(["to be or", "not to be"]).process(Split()).get_side_output(WORDS)
    return words.key_by(lambda value: value[0]).sum(1)


@recorded()
def side_output_main(env):
    """A tagged result goes to the side output and not to the main stream."""

    class Split(ProcessFunction):

        def process_element(self, value, ctx: ProcessFunction.Context):
            if value % 2:
                yield ODD, value
            else:
                yield value

    main = env.from_collection([1, 2, 3, 4]).process(Split())
    main.get_side_output(ODD)
    return main


@recorded()
def side_output_misfit(env):
    """A side result that is not of its tag's type."""

    NUMBERS = OutputTag("numbers", Types.INT())

    class Split(ProcessFunction):

        def process_element(self, value, ctx: ProcessFunction.Context):
            yield NUMBERS, "not a number"

    return env.from_collection([1, 2]).process(Split()).get_side_output(NUMBERS)


@recorded(quirk="Without any get_side_output the pair of tag and value is a record of the main stream.")
def side_output_never_read(env):
    """Tagged results of a function of which no side output is read."""

    class Split(ProcessFunction):

        def process_element(self, value, ctx: ProcessFunction.Context):
            if value % 2:
                yield ODD, value
            else:
                yield value

    return env.from_collection([1, 2, 3, 4]).process(Split()).map(lambda x: x if isinstance(x, int) else (len(x), x[1]))


@recorded()
def side_output_of_all_windows(env):
    """A function of windows over all records emits to a side output."""

    EVEN = OutputTag("even", Types.TUPLE([Types.LONG(), Types.INT()]))

    class Split(ProcessAllWindowFunction):
        def process(self, context, elements):
            for element in elements:
                if element[2] % 2:
                    yield element
                else:
                    yield EVEN, (context.window().start, element[2])

    stream = timed(env, [("a", 5, 1), ("b", 3, 2), ("a", 13, 4), ("a", 8, 8), ("b", 25, 16), ("b", 7, 3)])
    windows = stream.window_all(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    return windows.process(Split()).get_side_output(EVEN)


@recorded()
def side_output_of_side_output(env):
    """A side output is a stream like any other, with side outputs of its own."""

    LARGE = OutputTag("large", Types.INT())

    class Odd(ProcessFunction):
        def process_element(self, value, ctx: ProcessFunction.Context):
            if value % 2:
                yield ODD, value
            else:
                yield value

    class Large(ProcessFunction):
        def process_element(self, value, ctx: ProcessFunction.Context):
            if value > 4:
                yield LARGE, value
            else:
                yield value

    odd = env.from_collection(list(range(10))).process(Odd()).get_side_output(ODD)
    return odd.map(lambda value: value + 2, Types.INT()).process(Large()).get_side_output(LARGE)


@recorded()
def side_output_often(env):
    """The order of a side output is the order in which it was emitted."""

    OFTEN = OutputTag("often", Types.TUPLE([Types.INT(), Types.INT()]))

    class Split(ProcessFunction):
        def process_element(self, value, ctx: ProcessFunction.Context):
            for n in range(value):
                yield OFTEN, (value, n)
                yield value

    return env.from_collection([1, 3, 2]).process(Split()).get_side_output(OFTEN)


@recorded(ordered=False, result="stdout")
def side_output_printed(env):
    """Main output and side output, each with a sink of its own."""
    split = env.from_collection([1, 2, 3, 4]).process(Split(), Types.INT())
    split.print("even")
    split.get_side_output(ODD).print("odd")


@recorded(ordered=False)
def side_output_read_twice(env):
    """A side output read twice gives its records twice."""

    class Split(ProcessFunction):
        def process_element(self, value, ctx: ProcessFunction.Context):
            if value % 2:
                yield ODD, value

    split = env.from_collection([1, 2, 3, 4]).process(Split())
    first, second = split.get_side_output(ODD), split.get_side_output(ODD)
    return first.map(lambda value: ("first", value)).union(second.map(lambda value: ("second", value)))


@recorded()
def side_output_row_type(env):
    """A list of types as a tag's type stands for a row."""

    ROWS = OutputTag("rows", [Types.INT(), Types.STRING()])

    class Split(ProcessFunction):
        def process_element(self, value, ctx: ProcessFunction.Context):
            yield ROWS, Row(value, "x" * value)

    rows = env.from_collection([1, 2, 3]).process(Split()).get_side_output(ROWS)
    return rows.map(lambda row: (row[0], row[1], str(row)))


@recorded()
def side_output_same_id(env):
    """Two tags of one id are one side output."""

    HERE = OutputTag("odd", Types.INT())
    THERE = OutputTag("odd", Types.INT())

    class Split(ProcessFunction):
        def process_element(self, value, ctx: ProcessFunction.Context):
            if value % 2:
                yield HERE, value
            else:
                yield value

    return env.from_collection([1, 2, 3, 4]).process(Split()).get_side_output(THERE)


@recorded(ordered=False)
def side_output_same_id_of_two(env):
    """Two functions, one behind the other, use one id: each has its own side output."""

    TAG = OutputTag("tag", Types.STRING())

    class Tagged(ProcessFunction):
        def __init__(self, name):
            self.name = name

        def process_element(self, value, ctx: ProcessFunction.Context):
            yield TAG, f"{self.name} {value}"
            yield value

    first = env.from_collection([1, 2]).process(Tagged("first"))
    second = first.process(Tagged("second"))
    return first.get_side_output(TAG).union(second.get_side_output(TAG))


@recorded(ordered=False)
def side_output_several(env):
    """Several side outputs, of none, one and many records per record."""

    NEVER, ONCE, OFTEN = OutputTag("never"), OutputTag("once"), OutputTag("often")

    class Split(ProcessFunction):
        def process_element(self, value, ctx: ProcessFunction.Context):
            yield ONCE, ("once", value)
            for n in range(value):
                yield OFTEN, ("often", value, n)

    main = env.from_collection([1, 2, 3]).process(Split())
    return main.union(main.get_side_output(NEVER), main.get_side_output(ONCE), main.get_side_output(OFTEN))


@recorded()
def side_output_tagged(env):
    """The side output of a tag holds the tagged results."""

    BIG = OutputTag("big")

    class Split(ProcessFunction):

        def process_element(self, value, ctx: ProcessFunction.Context):
            yield value
            if value % 2:
                yield ODD, value
            if value > 2:
                yield BIG, ("big", value)

    main = env.from_collection([1, 2, 3, 4]).process(Split())
    return main.get_side_output(ODD).map(lambda x: ("odd", x)).union(main.get_side_output(BIG))


@recorded()
def side_output_timestamps(env):
    """Records of a side output have the time of the record that made them."""

    LATER = OutputTag("later", Types.STRING())

    class Split(ProcessFunction):
        def process_element(self, value, ctx: ProcessFunction.Context):
            yield LATER, value[0]

    class Times(ProcessFunction):
        def process_element(self, value, ctx: ProcessFunction.Context):
            yield value, ctx.timestamp()

    stream = timed(env, [("a", 5), ("b", 3), ("c", 8)])
    return stream.process(Split()).get_side_output(LATER).process(Times())


@recorded(result="facts")
def side_output_type_of_wrong_kind(env):
    """A tag's type is a type."""
    return [OutputTag("tag", int).tag_id]


@recorded(ordered=False)
def side_output_union_order(env):
    """As above with an unnamed type on both tags and the main stream in the union."""

    ODD = OutputTag("odd")

    class Split(ProcessFunction):

        def process_element(self, value, ctx: ProcessFunction.Context):
            yield value
            if value % 2:
                yield ODD, -value

    main = env.from_collection([1, 2, 3, 4]).process(Split())
    return main.union(main.get_side_output(ODD))


@recorded()
def side_output_unused_tag(env):
    """Results for a tag that nobody reads, while another tag is read, are dropped."""

    READ = OutputTag("read", Types.INT())
    UNREAD = OutputTag("unread", Types.INT())

    class Split(ProcessFunction):

        def process_element(self, value, ctx: ProcessFunction.Context):
            yield UNREAD, value
            yield READ, value
            yield value

    main = env.from_collection([1, 2]).process(Split())
    main.get_side_output(READ)
    return main


@recorded(ordered=False)
def side_output_windowed(env):
    """A side output goes into windows by the times of its records."""

    NUMBERS = OutputTag("numbers", Types.TUPLE([Types.STRING(), Types.INT()]))

    class Split(ProcessFunction):
        def process_element(self, value, ctx: ProcessFunction.Context):
            yield NUMBERS, (value[0], value[2])

    class Show(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield key, context.window().start, sum(element[1] for element in elements)

    stream = timed(env, [("a", 5, 1), ("b", 3, 2), ("a", 13, 4), ("a", 8, 8), ("b", 25, 16)])
    numbers = stream.process(Split()).get_side_output(NUMBERS).key_by(lambda value: value[0])
    return numbers.window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Show())
