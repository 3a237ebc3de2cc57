"""What a runtime context tells in a named operator at parallelism 2."""

from pyflink.datastream.functions import MapFunction, RuntimeContext

PARALLELISM = 2
MODE = "STREAMING"
ORDERED = False


class Facts(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.facts = [
            runtime_context.get_task_name(), runtime_context.get_task_name_with_subtasks(),
            runtime_context.get_number_of_parallel_subtasks(), runtime_context.get_max_number_of_parallel_subtasks(),
            runtime_context.get_index_of_this_subtask(), runtime_context.get_attempt_number()]

    def map(self, value):
        return self.facts


def build(env):
    env.set_max_parallelism(10)
    return env.from_collection([1]).broadcast().map(Facts()).name("facts")
