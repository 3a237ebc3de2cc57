"""Timers of both time domains."""

from pyflink.common import Duration, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import KeyedProcessFunction, ProcessFunction, RuntimeContext
from pyflink.datastream.state import MapStateDescriptor, ValueStateDescriptor
from tests.recorded.family import recorded


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def timed(env, values):
    return env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )


@recorded()
def timer_at_the_end_of_time(env):
    """A timer at the end of time fires."""

    class Timed(KeyedProcessFunction):
        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            ctx.timer_service().register_event_time_timer(2**63 - 1)

        def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
            yield timestamp

    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).process(Timed())


@recorded(mode="BATCH")
def timer_both_domains_batch(env):
    """In a batch job a key's event-time timers fire before those of processing time."""

    class Timed(KeyedProcessFunction):
        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            ctx.timer_service().register_processing_time_timer(value[1])
            ctx.timer_service().register_event_time_timer(10**14 + value[1])

        def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
            yield ctx.get_current_key(), timestamp, ctx.time_domain().name

    stream = timed(env, [("a", 5), ("b", 2), ("a", 3), ("b", 4)])
    return stream.key_by(lambda value: value[0], Types.STRING()).process(Timed())


@recorded()
def timer_deleted(env):
    """A deleted timer does not fire; deleting an unknown one changes nothing."""

    class Timed(KeyedProcessFunction):
        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            timers = ctx.timer_service()
            timers.register_event_time_timer(value[1])
            timers.register_event_time_timer(value[1] + 100)
            timers.delete_event_time_timer(value[1])
            timers.delete_event_time_timer(7000)

        def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
            yield timestamp

    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).process(Timed())


@recorded()
def timer_flushes_map_state(env):
    """Records wait in a map state until their timer takes them out."""

    class Sorted(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext):
            self.waiting = runtime_context.get_map_state(MapStateDescriptor("waiting", Types.LONG(), Types.LONG()))
            self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            before = self.waiting.get(value[1]) if self.waiting.contains(value[1]) else 0
            self.waiting.put(value[1], before + value[2])
            ctx.timer_service().register_event_time_timer(value[1])

        def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
            number = (self.count.value() or 0) + 1
            self.count.update(number)
            total = self.waiting.get(timestamp)
            self.waiting.remove(timestamp)
            yield ctx.get_current_key(), number, timestamp, total, sorted(self.waiting.keys())

    values = [("a", 9, 1), ("b", 14, 2), ("a", 3, 4), ("a", 9, 8), ("b", 5, 16), ("a", 7, 32), ("b", 14, 64)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).process(Sorted())


@recorded()
def timer_in_timer(env):
    """A timer registered by a timer fires in the same pass."""

    class Timed(KeyedProcessFunction):
        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            ctx.timer_service().register_event_time_timer(value[1])

        def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
            if timestamp < 20:
                ctx.timer_service().register_event_time_timer(timestamp + 7)
            yield timestamp

    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).process(Timed())


@recorded()
def timer_keys_at_the_end(env):
    """At the end of the input, timers fire in the order of their times over all keys, less the deleted one."""

    class Timed(KeyedProcessFunction):
        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            timers = ctx.timer_service()
            timers.register_event_time_timer(value[1])
            timers.register_event_time_timer(100 - value[1])
            if value[2] == 16:
                timers.delete_event_time_timer(14)
                timers.delete_event_time_timer(12)  # of another key

        def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
            yield ctx.get_current_key(), timestamp

    values = [("a", 3, 1), ("b", 14, 2), ("a", 12, 4), ("c", 7, 8), ("b", 21, 16), ("a", 9, 32), ("b", 18, 64)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).process(Timed())


@recorded()
def timer_order(env):
    """Timers fire in the order of their times, whatever the order of registration."""

    class Timed(KeyedProcessFunction):
        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            ctx.timer_service().register_event_time_timer(100 - value[1])
            yield "element", value[2], ctx.timestamp(), ctx.timer_service().current_watermark()

        def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
            yield "timer", timestamp, ctx.timestamp(), ctx.get_current_key(), ctx.timer_service().current_watermark()

    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).process(Timed())


@recorded()
def timer_out_of_order_bound(env):
    """Timestamps and the watermark that a function sees with a bound on the disorder."""

    class Timed(KeyedProcessFunction):
        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            ctx.timer_service().register_event_time_timer(ctx.timestamp() + 5)
            yield ctx.get_current_key(), ctx.timestamp(), ctx.timer_service().current_watermark()

        def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
            yield ctx.get_current_key(), timestamp, ctx.timestamp(), ctx.timer_service().current_watermark()

    values = [("a", 3, 1), ("b", 14, 2), ("a", 12, 4), ("c", 7, 8), ("b", 21, 16), ("a", 9, 32), ("b", 18, 64)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(10)).with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).process(Timed())


@recorded()
def timer_output_timestamp(env):
    """What a timer emits has the timer's time."""

    class Timed(KeyedProcessFunction):
        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            ctx.timer_service().register_event_time_timer(value[1] + 30)

        def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
            yield "timer"

    class Times(ProcessFunction):
        def process_element(self, value, ctx: ProcessFunction.Context):
            yield value, ctx.timestamp()

    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).process(Timed()).process(Times())


@recorded(mode="BATCH", ordered=False)
def timer_processing_time_batch(env):
    """In a batch job processing-time timers fire at the end of their key, whatever their time."""

    class Timed(KeyedProcessFunction):
        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            ctx.timer_service().register_processing_time_timer(10**14 + value[1])
            yield value

        def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
            yield ctx.get_current_key(), timestamp, ctx.time_domain().name

    values = [("a", 5), ("b", 2), ("a", 3), ("b", 4), ("a", 5)]
    return env.from_collection(values).key_by(lambda value: value[0], Types.STRING()).process(Timed())


@recorded()
def timer_processing_time_ends(env):
    """Pending processing-time timers are dropped at the end of the input."""

    class Timed(KeyedProcessFunction):
        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 10**9)
            yield value[2]

        def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
            yield "fired"

    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).process(Timed())


@recorded()
def timer_same_time_of_keys(env):
    """Two keys have a timer at the same time: both fire, each with its own key."""

    class Timed(KeyedProcessFunction):
        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            ctx.timer_service().register_event_time_timer(50)

        def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
            yield ctx.get_current_key(), timestamp

    values = [("b", 1, 1), ("a", 2, 2), ("b", 3, 4), ("a", 4, 8)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).process(Timed())


@recorded()
def timer_side_output(env):
    """A timer may emit to a side output."""

    TAG = OutputTag("alerts", Types.TUPLE([Types.STRING(), Types.LONG()]))

    class Timed(KeyedProcessFunction):
        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            ctx.timer_service().register_event_time_timer(value[1] + 10)
            yield value

        def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
            yield TAG, (ctx.get_current_key(), timestamp)
            yield ctx.get_current_key(), timestamp, 0

    values = [("a", 3, 1), ("b", 14, 2), ("a", 12, 4), ("c", 7, 8), ("b", 21, 16), ("a", 9, 32), ("b", 18, 64)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).process(Timed()).get_side_output(TAG)


@recorded()
def timer_state(env):
    """A timer sees the state of its key."""

    class Timed(KeyedProcessFunction):
        def open(self, runtime_context):
            self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            self.sum.update((self.sum.value() or 0) + value[2])
            ctx.timer_service().register_event_time_timer(1000 + len(value[0]))

        def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
            yield ctx.get_current_key(), timestamp, self.sum.value()

    values = [("a", 1, 1), ("bb", 2, 2), ("a", 3, 3), ("ccc", 4, 4), ("bb", 5, 5)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).process(Timed())


@recorded()
def timer_twice(env):
    """The same timer twice fires once."""

    class Timed(KeyedProcessFunction):
        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            ctx.timer_service().register_event_time_timer(50)
            ctx.timer_service().register_event_time_timer(50)

        def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
            yield timestamp

    values = [("a", 1, 1), ("a", 4, 2), ("a", 12, 3), ("a", 9, 4), ("a", 25, 5), ("a", 10, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).process(Timed())
