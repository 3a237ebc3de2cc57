"""Shapes of a colour that follow each other by rules, all rules being there first."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import KeyedBroadcastProcessFunction, RuntimeContext
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def timed(env, values):
    return env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )


RULES = MapStateDescriptor("rules", Types.STRING(), Types.TUPLE([Types.STRING(), Types.STRING()]))


class Match(KeyedBroadcastProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.waiting = runtime_context.get_map_state(
            MapStateDescriptor("waiting", Types.STRING(), Types.PICKLED_BYTE_ARRAY())
        )

    def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
        ctx.get_broadcast_state(RULES).put(value[0], (value[2], value[3]))

    def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
        shape = value[2]
        for name, (first, second) in sorted(ctx.get_broadcast_state(RULES).items()):
            before = (self.waiting.get(name) if self.waiting.contains(name) else None) or []
            if shape == second and before:
                for earlier in before:
                    yield value[0], name, earlier, value[1]
                self.waiting.remove(name)
                before = []
            if shape == first:
                self.waiting.put(name, [*before, value[1]])


def build(env):
    rules = timed(env, [("r1", 1, "rectangle", "triangle"), ("r2", 2, "circle", "circle")]).broadcast(RULES)
    shapes = timed(env, [
        ("red", 1, "rectangle"), ("blue", 2, "circle"), ("red", 3, "rectangle"), ("red", 4, "circle"),
        ("blue", 5, "triangle"), ("red", 6, "triangle"), ("blue", 7, "circle"), ("blue", 8, "circle"),
        ("red", 9, "triangle"), ("red", 10, "circle"),
    ])
    return shapes.key_by(lambda value: value[0], Types.STRING()).connect(rules).process(Match())
