"""A keyed stream connected to a broadcast stream: broadcast state, keyed state and timers."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import KeyedBroadcastProcessFunction, RuntimeContext
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from tests.recorded.family import recorded


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def timed(env, values):
    return env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class AtTheEnd(KeyedBroadcastProcessFunction):
    """Data waits until all rules are there: timers fire when the input has ended."""

    def open(self, runtime_context: RuntimeContext):
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", Types.INT()))

    def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
        self.waiting.add(value[2])
        ctx.timer_service().register_event_time_timer(100 + len(value[0]))

    def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
        rules = ctx.get_broadcast_state(RULES)
        rules.put(value[0], (rules.get(value[0]) or 0) + value[2])

    def on_timer(self, timestamp, ctx: KeyedBroadcastProcessFunction.OnTimerContext):
        factor = ctx.get_broadcast_state(RULES).get(ctx.get_current_key())
        yield ctx.get_current_key(), timestamp, factor, list(self.waiting.get())
        self.waiting.clear()


@recorded(mode="BATCH")
def broadcast_keyed_batch(env):
    """In a batch job the rules are there when the first key comes."""

    class Apply(KeyedBroadcastProcessFunction):
        def open(self, runtime_context: RuntimeContext):
            self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.INT()))

        def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
            self.seen.add(value[2])
            yield ctx.get_current_key(), ctx.get_broadcast_state(RULES).get(value[0]), list(self.seen.get())

        def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
            ctx.get_broadcast_state(RULES).put(value[0], value[2])

    data = timed(env, [("a", 3, 1), ("bb", 14, 2), ("a", 12, 4), ("bb", 21, 8), ("ccc", 9, 16), ("a", 4, 32)])
    rules = timed(env, [("bb", 16, 10), ("a", 5, 20), ("bb", 7, 30), ("dddd", 8, 40)]).broadcast(RULES)

    return data.key_by(lambda value: value[0], Types.STRING()).connect(rules).process(Apply())


@recorded()
def broadcast_keyed_broadcast_side_key(env):
    """The broadcast side of a keyed function has no current key."""

    class Asks(KeyedBroadcastProcessFunction):
        def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
            yield value

        def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
            yield ctx.get_current_key()

    keyed = env.from_collection([1, 2]).key_by(lambda value: value)
    return keyed.connect(env.from_collection(["a", "b"]).broadcast(RULES)).process(Asks())


@recorded()
def broadcast_keyed_broadcast_side_state(env):
    """The broadcast side of a keyed function reads a keyed state."""

    class Reads(KeyedBroadcastProcessFunction):
        def open(self, runtime_context: RuntimeContext):
            self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

        def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
            self.count.update(1)

        def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
            yield "read", self.count.value() is None

    nothing = env.from_collection([1, 2]).filter(lambda value: False).key_by(lambda value: value)
    return nothing.connect(env.from_collection(["a", "b"]).broadcast(RULES)).process(Reads())


@recorded()
def broadcast_keyed_broadcast_side_timer(env):
    """The broadcast side of a keyed function has no timers."""

    class Timed(KeyedBroadcastProcessFunction):
        def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
            yield value

        def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
            ctx.timer_service().register_event_time_timer(100)

    keyed = env.from_collection([1, 2]).key_by(lambda value: value)
    return keyed.connect(env.from_collection(["a", "b"]).broadcast(RULES)).process(Timed())


@recorded(ordered=False)
def broadcast_keyed_contexts(env):
    """What contexts of a keyed broadcast function tell."""

    class Facts(KeyedBroadcastProcessFunction):
        def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
            ctx.timer_service().register_event_time_timer(value[1] + 100)
            yield (1, value, ctx.get_current_key(), ctx.timestamp(), ctx.current_watermark(),
                   ctx.timer_service().current_watermark())

        def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
            yield 2, value, ctx.timestamp(), ctx.current_watermark()

        def on_timer(self, timestamp, ctx: KeyedBroadcastProcessFunction.OnTimerContext):
            yield (timestamp, ctx.get_current_key(), ctx.timestamp(), ctx.time_domain().name, ctx.current_watermark(),
                   ctx.timer_service().current_watermark())

    data = timed(env, [("a", 3, 1), ("bb", 14, 2), ("a", 12, 4), ("bb", 21, 8), ("ccc", 9, 16), ("a", 4, 32)])
    rules = timed(env, [("bb", 16, 10), ("a", 5, 20), ("bb", 7, 30), ("dddd", 8, 40)]).broadcast(RULES)

    return data.key_by(lambda value: value[0], Types.STRING()).connect(rules).process(Facts())


@recorded()
def broadcast_keyed_function_without_keys(env):
    """A keyed broadcast function needs a keyed stream."""

    class Both(KeyedBroadcastProcessFunction):
        def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
            yield value

        def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
            yield value

    return env.from_collection([1]).connect(env.from_collection(["a"]).broadcast(RULES)).process(Both())


@recorded()
def broadcast_keyed_several_states(env):
    """Several broadcast states, read by timers of the keyed side."""

    NUMBERS = MapStateDescriptor("numbers", Types.STRING(), Types.INT())
    TIMES = MapStateDescriptor("times", Types.LONG(), Types.STRING())

    class Apply(KeyedBroadcastProcessFunction):
        def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
            ctx.timer_service().register_event_time_timer(100 + value[1])

        def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
            ctx.get_broadcast_state(NUMBERS).put(value[0], value[2])
            ctx.get_broadcast_state(TIMES).put(value[1], value[0])

        def on_timer(self, timestamp, ctx: KeyedBroadcastProcessFunction.OnTimerContext):
            numbers, times = ctx.get_broadcast_state(NUMBERS), ctx.get_broadcast_state(TIMES)
            yield (ctx.get_current_key(), timestamp, numbers.contains(ctx.get_current_key()), "bb" in numbers,
                   sorted(numbers.items()), sorted(times.values()), sorted(times.keys()), times.is_empty())

    data = timed(env, [("a", 3, 1), ("bb", 14, 2), ("a", 12, 4), ("ccc", 9, 16)])
    rules = timed(env, [("bb", 16, 10), ("a", 5, 20), ("bb", 7, 30)]).broadcast(NUMBERS, TIMES)
    return data.key_by(lambda value: value[0]).connect(rules).process(Apply())


@recorded(ordered=False)
def broadcast_keyed_side_output(env):
    """The keyed side, the broadcast side and timers emit to a side output."""

    TAG = OutputTag("tagged", Types.PICKLED_BYTE_ARRAY())

    class Tagged(KeyedBroadcastProcessFunction):
        def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
            ctx.timer_service().register_event_time_timer(value[1])
            yield TAG, ("data", value)
            yield "main"

        def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
            yield TAG, ("rule", value)

        def on_timer(self, timestamp, ctx: KeyedBroadcastProcessFunction.OnTimerContext):
            yield TAG, ("timer", ctx.get_current_key(), timestamp)

    data = timed(env, [("a", 3, 1), ("bb", 14, 2), ("a", 12, 4), ("bb", 21, 8), ("ccc", 9, 16), ("a", 4, 32)])
    rules = timed(env, [("bb", 16, 10), ("a", 5, 20), ("bb", 7, 30), ("dddd", 8, 40)]).broadcast(RULES)

    return data.key_by(lambda value: value[0]).connect(rules).process(Tagged()).get_side_output(TAG)


@recorded()
def broadcast_keyed_timer_writes(env):
    """A timer of the keyed side may not write a broadcast state."""

    class Writes(KeyedBroadcastProcessFunction):
        def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
            ctx.timer_service().register_event_time_timer(100)

        def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
            ctx.get_broadcast_state(RULES).put(value[0], value[2])

        def on_timer(self, timestamp, ctx: KeyedBroadcastProcessFunction.OnTimerContext):
            ctx.get_broadcast_state(RULES).put("timer", 1)
            yield "written"

    data = timed(env, [("a", 3, 1), ("bb", 14, 2), ("a", 12, 4), ("bb", 21, 8), ("ccc", 9, 16), ("a", 4, 32)])
    rules = timed(env, [("bb", 16, 10), ("a", 5, 20), ("bb", 7, 30), ("dddd", 8, 40)]).broadcast(RULES)

    return data.key_by(lambda value: value[0]).connect(rules).process(Writes())


@recorded()
def broadcast_keyed_timers(env):
    """A timer of the keyed side reads keyed state and broadcast state."""
    data = timed(env, [("a", 3, 1), ("bb", 14, 2), ("a", 12, 4), ("bb", 21, 8), ("ccc", 9, 16), ("a", 4, 32)])
    rules = timed(env, [("bb", 16, 10), ("a", 5, 20), ("bb", 7, 30), ("dddd", 8, 40)]).broadcast(RULES)

    return data.key_by(lambda value: value[0]).connect(rules).process(AtTheEnd())


@recorded(
    mode="BATCH",
    quirk="Where timers fire, PyFlink has dropped the keyed state of broadcast functions, or most of it.",
)
def broadcast_keyed_timers_batch(env):
    """As broadcast_keyed_timers, in a batch job: key by key."""
    data = timed(env, [("a", 3, 1), ("bb", 14, 2), ("a", 12, 4), ("bb", 21, 8), ("ccc", 9, 16), ("a", 4, 32)])
    rules = timed(env, [("bb", 16, 10), ("a", 5, 20), ("bb", 7, 30), ("dddd", 8, 40)]).broadcast(RULES)

    return data.key_by(lambda value: value[0], Types.STRING()).connect(rules).process(AtTheEnd())


@recorded(parallelism=2, ordered=False)
def broadcast_keyed_timers_two_subtasks(env):
    """As broadcast_keyed_timers, with the keys in two subtasks and the rules in both."""
    data = timed(env, [("a", 3, 1), ("bb", 14, 2), ("a", 12, 4), ("bb", 21, 8), ("ccc", 9, 16), ("a", 4, 32)])
    rules = timed(env, [("bb", 16, 10), ("a", 5, 20), ("bb", 7, 30), ("dddd", 8, 40)]).broadcast(RULES)

    return data.key_by(lambda value: value[0]).connect(rules).process(AtTheEnd())
