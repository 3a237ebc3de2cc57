"""Value state: absent, set, cleared, set to None."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Steps(KeyedProcessFunction):

    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_state(ValueStateDescriptor("state", Types.STRING()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        yield "before", value, self.state.value()
        if value[1] == "clear":
            self.state.clear()
        else:
            self.state.update(value[1])
        yield "after", value, self.state.value()


def build(env):
    steps = [("a", "x"), ("a", "y"), ("b", "z"), ("a", "clear"), ("a", "clear"), ("a", ""), ("b", "clear"), ("b", "w")]
    return env.from_collection(steps).key_by(lambda x: x[0]).process(Steps())
