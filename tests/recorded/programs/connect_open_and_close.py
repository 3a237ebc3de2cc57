"""The function of connected streams is opened before its first record, with its subtask's context."""

from pyflink.datastream.functions import CoMapFunction, RuntimeContext

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


class Opened(CoMapFunction):
    def __init__(self):
        self.context = None

    def open(self, runtime_context: RuntimeContext):
        self.context = (runtime_context.get_index_of_this_subtask(),
                        runtime_context.get_number_of_parallel_subtasks(),
                        runtime_context.get_attempt_number())

    def map1(self, value):
        return 1, value, self.context

    def map2(self, value):
        return 2, value, self.context


def build(env):
    return env.from_collection([1, 2]).connect(env.from_collection(["a", "b"])).map(Opened())
