"""The order within each side stays."""

from pyflink.datastream.functions import CoFlatMapFunction, RuntimeContext

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


class Both(CoFlatMapFunction):
    """Records carry what their side had seen so far."""

    def open(self, runtime_context: RuntimeContext):
        self.seen1, self.seen2 = [], []

    def flat_map1(self, value):
        self.seen1.append(value)
        yield 1, tuple(self.seen1)

    def flat_map2(self, value):
        self.seen2.append(value)
        yield 2, tuple(self.seen2)


def build(env):
    return env.from_collection([5, 3, 4, 1]).connect(env.from_collection(["c", "a", "b"])).flat_map(Both())
