"""Value state in a FilterFunction: the first record of each key."""

from pyflink.common import Types
from pyflink.datastream.functions import FilterFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class First(FilterFunction):

    def open(self, runtime_context: RuntimeContext):
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.BOOLEAN()))

    def filter(self, value):
        first = not self.seen.value()
        self.seen.update(True)
        return first


def build(env):
    return env.from_collection(["a", "b", "a", "c", "b"]).key_by(lambda x: x).filter(First())
