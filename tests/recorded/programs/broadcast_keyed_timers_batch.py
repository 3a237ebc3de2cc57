"""As broadcast_keyed_timers, in a batch job: key by key."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import KeyedBroadcastProcessFunction, RuntimeContext
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True
QUIRK = "Where timers fire, PyFlink has dropped the keyed state of broadcast functions, or most of it."


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


def build(env):
    data = timed(env, [("a", 3, 1), ("bb", 14, 2), ("a", 12, 4), ("bb", 21, 8), ("ccc", 9, 16), ("a", 4, 32)])
    rules = timed(env, [("bb", 16, 10), ("a", 5, 20), ("bb", 7, 30), ("dddd", 8, 40)]).broadcast(RULES)

    return data.key_by(lambda value: value[0], Types.STRING()).connect(rules).process(AtTheEnd())
