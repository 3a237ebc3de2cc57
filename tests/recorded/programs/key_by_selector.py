"""A KeySelector is opened once; the key has a declared type."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction, KeySelector, RuntimeContext

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Length(KeySelector):

    def open(self, runtime_context: RuntimeContext):
        self.offset = 100

    def get_key(self, value):
        return len(value) + self.offset


class Tell(KeyedProcessFunction):

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        yield ctx.get_current_key(), value


def build(env):
    return env.from_collection(["a", "bb", "c"]).key_by(Length(), Types.INT()).process(Tell())
