"""How records are distributed over the subtasks of the next operator."""

from pyflink.datastream.functions import KeySelector, MapFunction, Partitioner, RuntimeContext
from tests.recorded.family import recorded


class Where(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.index = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return self.index, value


@recorded()
def partition_all_single(env):
    """At parallelism 1 no partitioner changes the order."""
    stream = env.from_collection([3, 1, 2])
    stream = stream.rebalance().map(lambda x: x).shuffle().map(lambda x: x).broadcast().map(lambda x: x)
    return stream.rescale().map(lambda x: x).forward().map(lambda x: x)


@recorded(parallelism=2, ordered=False)
def partition_broadcast(env):
    """broadcast gives every subtask every record."""
    return env.from_collection([1, 2, 3]).broadcast().map(Where())


@recorded(parallelism=2, ordered=False, result="stdout")
def partition_custom_class(env):
    """A Partitioner and a KeySelector; all records to the first subtask."""

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

    env.from_collection([1, 2, 3]).partition_custom(First(), Whole()).map(Where()).print()


@recorded(
    parallelism=2,
    ordered=False,
    quirk="execute_and_collect does not tell the partitioner its number of targets; execute does.",
)
def partition_custom_collected(env):
    """execute_and_collect behind a custom partitioner."""
    return env.from_collection([1, 2]).partition_custom(lambda key, n: key % n, lambda x: x).map(lambda x: x)


@recorded(parallelism=2, ordered=False, result="stdout")
def partition_custom_function(env):
    """A custom partitioner is given the key and the number of targets."""
    pairs = env.from_collection([("a", 1), ("bb", 2), ("ccc", 3), ("d", 4)])
    pairs.partition_custom(lambda key, n: len(key) % n, lambda pair: pair[0]).map(Where()).print()


@recorded(parallelism=2, result="stdout")
def partition_custom_negative(env):
    """A partitioner's result must be a target."""
    env.from_collection([1, 2, 3]).partition_custom(lambda key, n: -1, lambda x: x).map(lambda x: x).print()


@recorded(parallelism=2, result="stdout")
def partition_custom_out_of_range(env):
    """A partitioner's result must be a target."""
    env.from_collection([1, 2, 3]).partition_custom(lambda key, n: n, lambda x: x).map(lambda x: x).print()


@recorded(parallelism=2, result="stdout")
def partition_custom_targets(env):
    """The number of targets a partitioner is told, before an operator of another parallelism."""
    def partition(key, targets):
        raise ValueError(f"{targets} targets")

    env.from_collection([1]).partition_custom(partition, lambda x: x).map(lambda x: x).set_parallelism(1).print()


@recorded(parallelism=2, ordered=False)
def partition_default(env):
    """Without a partitioner a change of parallelism is a rebalance."""

    class Where(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.index = runtime_context.get_index_of_this_subtask()

        def map(self, value):
            return self.index

    return env.from_collection(list(range(10))).map(Where())


@recorded(parallelism=2, ordered=False)
def partition_forward(env):
    """forward keeps the subtask."""

    class Where(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.index = runtime_context.get_index_of_this_subtask()

        def map(self, value):
            return (*value, self.index)

    placed = env.from_collection([(1,), (2,), (3,)]).broadcast().map(Where())
    return placed.forward().map(Where())


@recorded(parallelism=2)
def partition_forward_to_more(env):
    """forward between different parallelisms is refused."""
    return env.from_collection([1, 2, 3]).forward().map(lambda x: x)


@recorded(parallelism=2, ordered=False)
def partition_rebalance(env):
    """rebalance deals the records round robin, whatever the first target."""

    class Where(MapFunction):

        def open(self, runtime_context: RuntimeContext):
            self.index = runtime_context.get_index_of_this_subtask()

        def map(self, value):
            return self.index

    return env.from_collection(list(range(10))).rebalance().map(Where())


@recorded(parallelism=2, ordered=False)
def partition_rescale(env):
    """rescale from one sender deals to both receivers, beginning with the first."""
    return env.from_collection(list(range(6))).rescale().map(Where())


@recorded(parallelism=2, ordered=False)
def partition_shuffle(env):
    """shuffle keeps every record once."""
    return env.from_collection(list(range(20))).shuffle().map(lambda x: x)
