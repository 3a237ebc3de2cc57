"""forward keeps the subtask."""

from pyflink.datastream.functions import MapFunction, RuntimeContext

PARALLELISM = 2
MODE = "STREAMING"
ORDERED = False


class Where(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.index = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return (*value, self.index)


def build(env):
    placed = env.from_collection([(1,), (2,), (3,)]).broadcast().map(Where())
    return placed.forward().map(Where())
