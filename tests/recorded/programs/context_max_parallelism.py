"""The maximum parallelism of a keyed operator at parallelism 1."""

from pyflink.datastream.functions import MapFunction, RuntimeContext

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Facts(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.facts = (runtime_context.get_number_of_parallel_subtasks(),
                      runtime_context.get_max_number_of_parallel_subtasks())

    def map(self, value):
        return self.facts


def build(env):
    return env.from_collection([1]).key_by(lambda x: x).map(Facts())
