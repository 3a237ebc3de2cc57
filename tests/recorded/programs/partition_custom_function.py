"""A custom partitioner is given the key and the number of targets."""

from pyflink.datastream.functions import MapFunction, RuntimeContext

PARALLELISM = 2
MODE = "STREAMING"
ORDERED = False
RESULT = "stdout"


class Where(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.index = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return self.index, value


def build(env):
    pairs = env.from_collection([("a", 1), ("bb", 2), ("ccc", 3), ("d", 4)])
    pairs.partition_custom(lambda key, n: len(key) % n, lambda pair: pair[0]).map(Where()).print()
