"""List state: absent, added to, replaced, replaced by nothing, cleared."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ListStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Steps(KeyedProcessFunction):

    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_list_state(ListStateDescriptor("state", Types.INT()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        step, argument = value
        if step == "add":
            self.state.add(argument)
        elif step == "add_all":
            self.state.add_all(argument)
        elif step == "update":
            self.state.update(argument)
        elif step == "clear":
            self.state.clear()
        yield step, argument, list(self.state.get())


def build(env):
    steps = [("get", 0), ("add", 1), ("add", 2), ("add_all", [3, 4]), ("add_all", []), ("update", [9]), ("add", 8),
             ("update", []), ("get", 0), ("add", 7), ("clear", 0), ("get", 0), ("add_all", [5]), ("get", 0)]
    return env.from_collection(steps).key_by(lambda x: 0).process(Steps())
