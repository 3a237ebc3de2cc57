"""Task names around a keyed operator."""

from pyflink.datastream.functions import KeyedProcessFunction, MapFunction, RuntimeContext

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Facts(KeyedProcessFunction):

    def open(self, runtime_context: RuntimeContext):
        self.facts = runtime_context.get_task_name(), runtime_context.get_task_name_with_subtasks()

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        yield self.facts


class MapFacts(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.facts = runtime_context.get_task_name(), runtime_context.get_task_name_with_subtasks()

    def map(self, value):
        return self.facts, value


def build(env):
    return (env.from_collection([1]).map(lambda x: x).name("first").key_by(lambda x: x)
            .process(Facts()).map(MapFacts()).key_by(lambda x: 0).map(MapFacts()))
