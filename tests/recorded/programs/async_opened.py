"""An async function is opened with the runtime context, and knows its subtask."""

from pyflink.common import Time
from pyflink.datastream import AsyncDataStream
from pyflink.datastream.functions import AsyncFunction, RuntimeContext

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Knows(AsyncFunction):

    def open(self, runtime_context: RuntimeContext):
        self.subtask = runtime_context.get_index_of_this_subtask()

    async def async_invoke(self, value):
        return [(self.subtask, value)]


def build(env):
    return AsyncDataStream.ordered_wait(env.from_collection([1, 2, 3]), Knows(), Time.seconds(5))
