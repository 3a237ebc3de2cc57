"""List, map and reducing state in BATCH mode start empty for each key."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor, ReducingStateDescriptor

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


class Several(KeyedProcessFunction):

    def open(self, runtime_context: RuntimeContext):
        self.values = runtime_context.get_list_state(ListStateDescriptor("values", Types.INT()))
        self.by_parity = runtime_context.get_map_state(MapStateDescriptor("parity", Types.INT(), Types.INT()))
        self.total = runtime_context.get_reducing_state(
            ReducingStateDescriptor("total", lambda a, b: a + b, Types.INT()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        key, number = value
        self.values.add(number)
        self.by_parity.put(number % 2, number)
        self.total.add(number)
        yield key, list(self.values.get()), sorted(self.by_parity.items()), self.total.get()


def build(env):
    values = [("a", 1), ("b", 2), ("a", 2), ("a", 3), ("b", 5), ("c", 0)]
    return env.from_collection(values).key_by(lambda x: x[0]).process(Several())
