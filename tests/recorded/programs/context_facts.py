"""What a runtime context tells in a chain of a map behind a source, at parallelism 1."""

from pyflink.datastream.functions import MapFunction, RuntimeContext

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Facts(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.facts = [
            runtime_context.get_task_name(), runtime_context.get_task_name_with_subtasks(),
            runtime_context.get_number_of_parallel_subtasks(), runtime_context.get_max_number_of_parallel_subtasks(),
            runtime_context.get_index_of_this_subtask(), runtime_context.get_attempt_number(),
            runtime_context.get_job_parameter("mine", "absent"), runtime_context.get_job_parameter("other", "absent")]

    def map(self, value):
        return self.facts


def build(env):
    env.get_config().set_global_job_parameters({"mine": "given"})
    return env.from_collection([1]).map(Facts())
