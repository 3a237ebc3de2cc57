"""A Partitioner and a KeySelector; all records to the first subtask."""

from pyflink.datastream.functions import KeySelector, MapFunction, Partitioner, RuntimeContext

PARALLELISM = 2
MODE = "STREAMING"
ORDERED = False
RESULT = "stdout"


class First(Partitioner):

    def partition(self, key, num_partitions):
        return 0


class Whole(KeySelector):

    def get_key(self, value):
        return value


class Where(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.index = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return self.index, value


def build(env):
    env.from_collection([1, 2, 3]).partition_custom(First(), Whole()).map(Where()).print()
