"""What the broadcast side can do with a broadcast state."""

from pyflink.common import Types
from pyflink.datastream.functions import BroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


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


def build(env):
    operations = [
        ("nothing",), ("put", "a", 1), ("put", "b", 2), ("put", "a", 3), ("put", "c", 4), ("remove", "c"),
        ("remove", "unknown"), ("set", "d", 6), ("del", "a"), ("clear",), ("put", "b", 7),
    ]
    rules = env.from_collection(operations).broadcast(RULES)
    return env.from_collection([1]).connect(rules).process(Operations())
