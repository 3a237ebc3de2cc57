"""Without a partitioner a change of parallelism is a rebalance."""

from pyflink.datastream.functions import MapFunction, RuntimeContext

PARALLELISM = 2
MODE = "STREAMING"
ORDERED = False


class Where(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.index = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return self.index


def build(env):
    return env.from_collection(list(range(10))).map(Where())
