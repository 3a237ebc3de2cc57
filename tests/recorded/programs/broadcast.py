"""A stream connected to a broadcast stream, and broadcast state."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction, RuntimeContext
from pyflink.datastream.state import MapStateDescriptor
from tests.recorded.family import recorded


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def timed(env, values):
    return env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


@recorded(ordered=False)
def broadcast_contexts(env):
    """Times that the contexts of a broadcast function tell."""

    class Facts(BroadcastProcessFunction):
        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            yield 1, value, ctx.timestamp(), ctx.current_watermark(), ctx.current_processing_time() > 1_600_000_000_000

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            yield 2, value, ctx.timestamp(), ctx.current_watermark(), ctx.current_processing_time() > 1_600_000_000_000

    data = timed(env, [("a", 5), ("b", 3), ("c", 8)])
    return data.connect(timed(env, [("x", 7), ("y", 1)]).broadcast(RULES)).process(Facts())


@recorded(result="facts")
def broadcast_names(env):
    """Names that broadcast functions have by default."""

    class Plain(BroadcastProcessFunction):
        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            yield value

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            yield value

    class Keyed(KeyedBroadcastProcessFunction):
        def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
            yield value

        def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
            yield value

    rules = env.from_collection(["a"]).broadcast(RULES)
    data = env.from_collection([1])
    return [data.connect(rules).process(Plain()).get_name(),
            data.key_by(lambda value: value).connect(rules).process(Keyed()).get_name()]


@recorded(mode="BATCH")
def broadcast_pattern(env):
    """Shapes of a colour that follow each other by rules, all rules being there first."""

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

    rules = timed(env, [("r1", 1, "rectangle", "triangle"), ("r2", 2, "circle", "circle")]).broadcast(RULES)
    shapes = timed(env, [
        ("red", 1, "rectangle"), ("blue", 2, "circle"), ("red", 3, "rectangle"), ("red", 4, "circle"),
        ("blue", 5, "triangle"), ("red", 6, "triangle"), ("blue", 7, "circle"), ("blue", 8, "circle"),
        ("red", 9, "triangle"), ("red", 10, "circle"),
    ])
    return shapes.key_by(lambda value: value[0], Types.STRING()).connect(rules).process(Match())


@recorded()
def broadcast_plain_function_with_keys(env):
    """A broadcast function without keys needs a stream without keys."""

    class Both(BroadcastProcessFunction):
        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            yield value

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            yield value

    keyed = env.from_collection([1]).key_by(lambda value: value)
    return keyed.connect(env.from_collection(["a"]).broadcast(RULES)).process(Both())


@recorded()
def broadcast_raises(env):
    """The broadcast side raises."""

    class Both(BroadcastProcessFunction):
        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            yield value

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            raise KeyError(value)

    return env.from_collection([1]).connect(env.from_collection(["a", "b"]).broadcast(RULES)).process(Both())


@recorded(quirk="PyFlink forgot to take clear() away from the data side.")
def broadcast_read_only_clear(env):
    """The data side has no clear."""

    class Both(BroadcastProcessFunction):
        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            ctx.get_broadcast_state(RULES).clear()
            yield value

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            pass

    return env.from_collection(["x"]).connect(env.from_collection(["a", "b"]).broadcast(RULES)).process(Both())


@recorded()
def broadcast_read_only_put_all(env):
    """The data side has no put_all."""

    class Both(BroadcastProcessFunction):
        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            ctx.get_broadcast_state(RULES).put_all({"x": 1})
            yield value

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            pass

    return env.from_collection(["x"]).connect(env.from_collection(["a", "b"]).broadcast(RULES)).process(Both())


@recorded()
def broadcast_read_only_remove(env):
    """The data side has no remove."""

    class Both(BroadcastProcessFunction):
        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            ctx.get_broadcast_state(RULES).remove("x")
            yield value

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            pass

    return env.from_collection(["x"]).connect(env.from_collection(["a", "b"]).broadcast(RULES)).process(Both())


@recorded()
def broadcast_several_states(env):
    """Several broadcast states under their names."""

    NAMES = MapStateDescriptor("names", Types.INT(), Types.STRING())

    class Both(BroadcastProcessFunction):
        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            pass

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            ctx.get_broadcast_state(RULES).put(value[0], value[1])
            names = ctx.get_broadcast_state(NAMES)
            names.put(value[1], value[0])
            yield sorted(ctx.get_broadcast_state(RULES).items()), sorted(names.items())

    rules = env.from_collection([("a", 1), ("b", 2), ("a", 2), ("c", 1)]).broadcast(RULES, NAMES)
    return env.from_collection([1, 2, 3]).connect(rules).process(Both())


@recorded(ordered=False)
def broadcast_side_output(env):
    """Both sides of a broadcast function emit to side outputs."""

    TAG = OutputTag("tagged", Types.STRING())

    class Both(BroadcastProcessFunction):
        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            yield TAG, f"data {value}"
            yield value

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            yield TAG, f"rule {value}"

    rules = env.from_collection(["a", "b"]).broadcast(RULES)
    main = env.from_collection([1, 2, 3]).connect(rules).process(Both())
    return main.get_side_output(TAG)


@recorded()
def broadcast_state_by_name(env):
    """A broadcast state is found by its name, whichever descriptor asks."""

    class Both(BroadcastProcessFunction):
        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            pass

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            ctx.get_broadcast_state(MapStateDescriptor("rules", Types.STRING(), Types.INT())).put(value, len(value))
            again = ctx.get_broadcast_state(MapStateDescriptor("rules", Types.STRING(), Types.INT()))
            yield sorted(again.items())

    rules = MapStateDescriptor("rules", Types.STRING(), Types.INT())
    return env.from_collection([1]).connect(env.from_collection(["a", "bb"]).broadcast(rules)).process(Both())


@recorded(quirk="PyFlink takes None for absent in contains(), while it is among the values.")
def broadcast_state_none(env):
    """None as a value in a broadcast state."""

    RULES = MapStateDescriptor("rules", Types.STRING(), Types.PICKLED_BYTE_ARRAY())

    class Operations(BroadcastProcessFunction):
        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            pass

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            state = ctx.get_broadcast_state(RULES)
            state.put(value, None)
            yield value, state.get(value), state.contains(value), list(state.values()), state.is_empty()

    return env.from_collection([1]).connect(env.from_collection(["a", "b"]).broadcast(RULES)).process(Operations())


@recorded(quirk="PyFlink hands out the object that is in the state, so that a change shows that nobody wrote.")
def broadcast_state_of_objects(env):
    """A list taken from a broadcast state and changed, and not put back."""

    RULES = MapStateDescriptor("rules", Types.STRING(), Types.PICKLED_BYTE_ARRAY())

    class Operations(BroadcastProcessFunction):
        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            pass

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            state = ctx.get_broadcast_state(RULES)
            kept = state.get("list") or []
            kept.append(value)
            if value % 2:
                state.put("list", kept)
            yield value, list(kept), list(state.get("list") or [])

    numbers = env.from_collection([1, 2, 3, 4, 5]).broadcast(RULES)
    return env.from_collection([1]).connect(numbers).process(Operations())


@recorded()
def broadcast_state_operations(env):
    """What the broadcast side can do with a broadcast state."""

    class Operations(BroadcastProcessFunction):
        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            pass

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            state = ctx.get_broadcast_state(RULES)
            operation, *rest = value
            if operation == "put":
                state.put(*rest)
            elif operation == "remove":
                state.remove(*rest)
            elif operation == "clear":
                state.clear()
            elif operation == "set":
                state[rest[0]] = rest[1]
            elif operation == "del":
                del state[rest[0]]
            yield (operation, sorted(state.items()), state.is_empty(), state.contains("a"), "b" in state, state.get("b"),
                   state["a"])

    operations = [
        ("nothing",), ("put", "a", 1), ("put", "b", 2), ("put", "a", 3), ("put", "c", 4), ("remove", "c"),
        ("remove", "unknown"), ("set", "d", 6), ("del", "a"), ("clear",), ("put", "b", 7),
    ]
    rules = env.from_collection(operations).broadcast(RULES)
    return env.from_collection([1]).connect(rules).process(Operations())


@recorded(quirk="PyFlink iterates over the dict as if it were pairs.")
def broadcast_state_put_all(env):
    """A dict put into a broadcast state."""

    class Puts(BroadcastProcessFunction):
        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            pass

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            state = ctx.get_broadcast_state(RULES)
            state.put_all({name: number for number, name in enumerate(value)})
            yield sorted(state.items())

    rules = env.from_collection(["abc", "bd"]).broadcast(RULES)
    return env.from_collection([1]).connect(rules).process(Puts())


@recorded()
def broadcast_state_read_only(env):
    """The data side may not write."""

    class Both(BroadcastProcessFunction):
        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            ctx.get_broadcast_state(RULES).put(value, 1)
            yield value

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            pass

    return env.from_collection(["x"]).connect(env.from_collection(["a", "b"]).broadcast(RULES)).process(Both())


@recorded()
def broadcast_state_unknown(env):
    """A broadcast state that was not declared."""

    OTHER = MapStateDescriptor("other", Types.STRING(), Types.INT())

    class Both(BroadcastProcessFunction):
        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            pass

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            ctx.get_broadcast_state(OTHER).put(value, 1)
            yield sorted(ctx.get_broadcast_state(OTHER).items())

    return env.from_collection([1]).connect(env.from_collection(["a", "b"]).broadcast(RULES)).process(Both())


@recorded()
def broadcast_state_views(env):
    """Keys, values and entries of a broadcast state, each looked at by itself."""

    class Views(BroadcastProcessFunction):
        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            pass

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            state = ctx.get_broadcast_state(RULES)
            state.put(value, len(value))
            yield sorted(state.keys())
            yield sorted(state.values())
            yield sorted(state)
            yield sorted(state.items())

    rules = env.from_collection(["a", "bb", "ccc"]).broadcast(RULES)
    return env.from_collection([1]).connect(rules).process(Views())


@recorded(parallelism=3, ordered=False)
def broadcast_three_subtasks(env):
    """Behind a map on three subtasks, every subtask still gets every rule once."""

    class Both(BroadcastProcessFunction):
        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            yield "data", value

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            yield "rule", value

    rules = env.from_collection(["a", "b", "c"]).map(lambda value: value + "!").broadcast(RULES)
    return env.from_collection([1, 2]).connect(rules).process(Both())


@recorded(parallelism=2, ordered=False)
def broadcast_two_subtasks(env):
    """Every subtask sees every broadcast record, and each data record goes to one of them."""

    class Both(BroadcastProcessFunction):
        def open(self, runtime_context):
            self.seen = 0

        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            yield "data", value

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            state = ctx.get_broadcast_state(RULES)
            state.put(value[0], (state.get(value[0]) or 0) + value[1])
            yield "rules", sorted(state.items())

    rules = env.from_collection([("a", 1), ("b", 2), ("a", 3)]).broadcast(RULES)
    return env.from_collection([1, 2, 3]).rebalance().connect(rules).process(Both())


@recorded(ordered=False)
def broadcast_typed(env):
    """A declared type of a broadcast function's results."""

    class Both(BroadcastProcessFunction):
        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            yield value, str(value)

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            yield len(value), value

    rules = env.from_collection(["a", "bb"]).broadcast(RULES)
    both = env.from_collection([1, 2, 3]).connect(rules).process(Both(), Types.TUPLE([Types.INT(), Types.STRING()]))
    return both.map(lambda value: value)


@recorded(ordered=False)
def broadcast_unkeyed(env):
    """A broadcast function without keys: each side comes in on its own method."""

    class Both(BroadcastProcessFunction):
        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            yield "data", value

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            ctx.get_broadcast_state(RULES).put(value[0], value[1])
            yield "rules", sorted(ctx.get_broadcast_state(RULES).items())

    rules = env.from_collection([("a", 1), ("b", 2), ("a", 3)]).broadcast(RULES)
    return env.from_collection([1, 2, 3]).connect(rules).process(Both())


@recorded(mode="BATCH")
def broadcast_unkeyed_batch(env):
    """In a batch job all broadcast records come before the data."""

    class Apply(BroadcastProcessFunction):
        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            rules = ctx.get_broadcast_state(RULES)
            yield value, rules.get(value), rules.contains(value), sorted(rules.keys())

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            state = ctx.get_broadcast_state(RULES)
            state.put(value[0], (state.get(value[0]) or 0) + value[1])

    rules = env.from_collection([("a", 1), ("b", 2), ("a", 3)]).broadcast(RULES)
    return env.from_collection(["b", "a", "c", "a"]).connect(rules).process(Apply())
