"""The program whose checkpoints are kept: state of every kind, windows, timers, operator and broadcast state.

It must stay as it is: old checkpoints are restored into it. Its first records fill the states; its last ones make the
functions tell what they hold.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from ekorn.common import Configuration, RestartStrategies, Row, Time, Types, TypeSerializer, WatermarkStrategy
from ekorn.common.watermark_strategy import TimestampAssigner, Watermark, WatermarkGenerator
from ekorn.datastream import (
    CheckpointedFunction,
    ExternalizedCheckpointRetention,
    ListCheckpointed,
    StreamExecutionEnvironment,
)
from ekorn.datastream.formats.avro import AvroSchema, GenericRecordAvroTypeInfo
from ekorn.datastream.functions import (
    AggregateFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    WindowFunction,
)
from ekorn.datastream.state import (
    AggregatingStateDescriptor,
    FoldingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from ekorn.datastream.window import CountSlidingWindowAssigner, EventTimeSessionWindows, TumblingEventTimeWindows
from ekorn.testing.by_epoch import EpochSource

KEYS = ["a", 7, ("t", 1.5)]
FILLED = 4  # epochs before the checkpoint that is kept
RUNS = [[("fill", key, epoch * 10 + i) for i, key in enumerate(KEYS)] for epoch in range(FILLED)]
TELLING = [[("tell", key, 100 + epoch * 10 + i)] for epoch in range(5) for i, key in enumerate(KEYS)]


@dataclass
class Visit:
    url: str
    hits: int = 0
    tags: list = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Place:
    x: int
    y: int


class Pair(NamedTuple):
    left: str
    right: int


class Hex(TypeSerializer):
    def serialize(self, element, stream):
        stream.write(f"{element:x}".encode())

    def deserialize(self, stream):
        return int(stream.read().decode(), 16)


class Total(AggregateFunction):
    def create_accumulator(self):
        return [0, 0]

    def add(self, value, accumulator):
        return [accumulator[0] + value, accumulator[1] + 1]

    def get_result(self, accumulator):
        return tuple(accumulator)

    def merge(self, a, b):
        return [a[0] + b[0], a[1] + b[1]]


AVRO = AvroSchema.parse_string('{"type": "record", "name": "Hit", "fields": [{"name": "n", "type": "long"}]}')
DAY = StateTtlConfig.new_builder(Time.days(1)).build()


class AllStates(KeyedProcessFunction):
    def open(self, runtime_context):
        get = runtime_context.get_state
        self.values = {
            "long": (get(ValueStateDescriptor("long", Types.LONG())), lambda n: n),
            "row": (
                get(ValueStateDescriptor("row", Types.ROW_NAMED(["n", "s"], [Types.LONG(), Types.STRING()]))),
                lambda n: Row(n=n, s=None if n % 2 else str(n)),
            ),
            "tuple": (
                get(ValueStateDescriptor("tuple", Types.TUPLE([Types.STRING(), Types.DOUBLE()]))),
                lambda n: (str(n), n / 2),
            ),
            "pojo": (get(ValueStateDescriptor("pojo", Visit)), lambda n: Visit(f"/{n}", n, [n])),
            "avro": (get(ValueStateDescriptor("avro", GenericRecordAvroTypeInfo(AVRO))), lambda n: {"n": n}),
            "hex": (get(ValueStateDescriptor("hex", Hex())), lambda n: n),
            "pickled": (get(ValueStateDescriptor("pickled")), lambda n: {"p": [Place(n, -n), Pair("l", n)], n: {n}}),
        }
        expiring = ValueStateDescriptor("expiring", Types.LONG())
        expiring.enable_time_to_live(DAY)
        self.values["expiring"] = (get(expiring), lambda n: n)
        expiring_map = MapStateDescriptor("expiring map", Types.STRING(), Types.LONG())
        expiring_map.enable_time_to_live(DAY)
        self.list = runtime_context.get_list_state(ListStateDescriptor("list", Types.LONG()))
        self.map = runtime_context.get_map_state(MapStateDescriptor("map", Types.STRING(), Types.LONG()))
        self.expiring_map = runtime_context.get_map_state(expiring_map)
        self.places = runtime_context.get_map_state(MapStateDescriptor("places"))
        self.reducing = runtime_context.get_reducing_state(ReducingStateDescriptor("reducing", max, Types.LONG()))
        self.aggregating = runtime_context.get_aggregating_state(AggregatingStateDescriptor("aggregating", Total()))
        self.folding = runtime_context.get_folding_state(
            FoldingStateDescriptor("folding", "", lambda so_far, n: f"{so_far}+{n}", Types.STRING())
        )

    def process_element(self, value, ctx):
        what, _, n = value
        if what == "tell":
            yield from self.tell(ctx.get_current_key())
            return
        for state, make in self.values.values():
            state.update(make(n))
        self.list.add(n)
        self.map.put(str(n), None if n % 2 else n)
        self.expiring_map.put(str(n), n)
        self.places.put(Place(n, n), [n])
        for state in (self.reducing, self.aggregating, self.folding):
            state.add(n)
        ctx.timer_service().register_event_time_timer(5000 + n)
        ctx.timer_service().register_processing_time_timer(1_000_100 + n)

    def tell(self, key):
        for name, (state, _) in self.values.items():
            yield "keyed", key, name, repr(state.value())
        yield "keyed", key, "list", repr(list(self.list))
        yield "keyed", key, "map", repr(sorted(self.map.items()))
        yield "keyed", key, "expiring map", repr(sorted(self.expiring_map.items()))
        yield "keyed", key, "places", repr(sorted((place.x, n) for place, n in self.places.items()))
        yield "keyed", key, "reducing", repr((self.reducing.get(), self.aggregating.get(), self.folding.get()))

    def on_timer(self, timestamp, ctx):
        yield "timer", ctx.get_current_key(), ctx.time_domain().name, repr(timestamp)


class OperatorStates(MapFunction, CheckpointedFunction):
    def initialize_state(self, context):
        store = context.get_operator_state_store()
        self.split = store.get_list_state(ListStateDescriptor("split", Types.LONG()))
        self.union = store.get_union_list_state(ListStateDescriptor("union"))
        self.rules = store.get_broadcast_state(MapStateDescriptor("rules", Types.STRING(), Types.LONG()))
        self.mine = list(self.split)

    def map(self, value):
        what, _, n = value
        if what == "tell":
            return "operator", sorted(self.split), sorted(map(repr, self.union)), sorted(self.rules.items())
        self.mine.append(n)
        return value

    def snapshot_state(self, context):
        self.split.update(self.mine)
        self.union.update([{"n": n} for n in self.mine])
        self.rules.put("rule", 42)


class Counts(MapFunction, ListCheckpointed):
    def __init__(self):
        self.count = 0

    def map(self, value):
        if value[0] == "tell":
            return "count", self.count
        self.count += 1
        return value

    def snapshot_state(self, checkpoint_id, timestamp):
        return [self.count]

    def restore_state(self, state):
        self.count = sum(state)


RULES = MapStateDescriptor("names", Types.STRING(), Types.LONG())


class Broadcasting(KeyedBroadcastProcessFunction):
    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(str(value), value)
        yield from ()

    def process_element(self, value, ctx):
        if value[0] == "tell":
            yield "broadcast", repr(sorted(ctx.get_broadcast_state(RULES).items()))


class Listing(WindowFunction):
    def apply(self, key, window, inputs):
        yield "window", key, repr(sorted(n for _, _, n in inputs))


class Counting(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(Watermark(event_timestamp - 1))

    def on_periodic_emit(self, output):
        pass


class ByNumber(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2]


def environment(directory, parallelism):
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.data-inline-threshold", "300")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism).set_max_parallelism(8)
    env.enable_checkpointing(10)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(directory))
    env.get_checkpoint_config().set_externalized_checkpoint_retention(
        ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    )
    env.set_restart_strategy(RestartStrategies.no_restart())
    return env


def draw(env):
    """The program: everything it finds out, in one stream. Every operator with state has a uid."""
    times = WatermarkStrategy.for_generator(lambda _: Counting()).with_timestamp_assigner(ByNumber())
    source = env.from_source(EpochSource([*RUNS, *TELLING]), WatermarkStrategy.no_watermarks(), "records")
    timed = source.uid("records").assign_timestamps_and_watermarks(times).uid("times").set_parallelism(1)
    keyed = timed.key_by(lambda record: record[1])
    states = keyed.process(AllStates()).uid("states")
    operator = timed.map(OperatorStates()).uid("operator").set_parallelism(1)
    counts = timed.map(Counts()).uid("counts").set_parallelism(1)
    rules = env.from_source(EpochSource([[n] for n in range(FILLED)]), WatermarkStrategy.no_watermarks(), "rules")
    broadcast = keyed.connect(rules.uid("rules").broadcast(RULES)).process(Broadcasting()).uid("broadcast")
    hour = TumblingEventTimeWindows.of(Time.hours(1))
    session = EventTimeSessionWindows.with_gap(Time.milliseconds(4000))
    panes = keyed.window(hour).apply(Listing()).uid("panes")
    sessions = keyed.window(session).apply(Listing()).uid("sessions")
    counted = keyed.window(CountSlidingWindowAssigner.of(3, 2)).apply(Listing()).uid("count windows")
    rolled = keyed.reduce(lambda a, b: (b[0], b[1], a[2] + b[2])).uid("rolled").filter(lambda r: r[0] == "tell")
    told = [s.filter(lambda r: r[0] not in ("fill", "tell")) for s in (operator, counts)]
    return states.map(str).union(
        *[s.map(str) for s in (*told, broadcast, panes, sessions, counted)],
        rolled.map(lambda r: f"rolled {r}"),
    )
