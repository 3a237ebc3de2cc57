"""Broadcast state in batch mode: all rules are there before the first reading."""

from pyflink.common import Types
from pyflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from pyflink.datastream.functions import BroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

LIMITS = MapStateDescriptor("limits", Types.STRING(), Types.INT())


class Check(BroadcastProcessFunction):
    def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
        limit = ctx.get_broadcast_state(LIMITS).get(value[0])
        if limit is None:
            yield f"{value[0]} has no limit"
        elif value[1] > limit:
            yield f"{value[0]} is {value[1] - limit} above {limit}"

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        ctx.get_broadcast_state(LIMITS)[value[0]] = value[1]


env = StreamExecutionEnvironment.get_execution_environment()
env.set_runtime_mode(RuntimeExecutionMode.BATCH)
env.set_parallelism(1)
limits = env.from_collection([("oven", 250), ("fridge", 8), ("oven", 230)]).broadcast(LIMITS)
readings = env.from_collection([("oven", 240), ("fridge", 5), ("lamp", 1), ("fridge", 11)])
readings.connect(limits).process(Check(), Types.STRING()).print()
env.execute()
