"""A MapFunction is opened once and its attributes live as long as the subtask."""

from pyflink.datastream.functions import MapFunction, RuntimeContext

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Numbering(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.opened = getattr(self, "opened", 0) + 1
        self.seen = 0

    def map(self, value):
        self.seen += 1
        return self.opened, self.seen, value


def build(env):
    return env.from_collection(["a", "b", "c"]).map(Numbering())
