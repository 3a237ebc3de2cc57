"""Both sides are methods of one object in a subtask: every pair meets once."""

from pyflink.datastream.functions import CoFlatMapFunction, RuntimeContext

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


class Pairs(CoFlatMapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.numbers, self.words = [], []

    def flat_map1(self, value):
        self.numbers.append(value)
        return [(value, word) for word in self.words]

    def flat_map2(self, value):
        self.words.append(value)
        return [(number, value) for number in self.numbers]


def build(env):
    return env.from_collection([1, 2, 3]).connect(env.from_collection(["a", "b"])).flat_map(Pairs())
