"""The execution plan of a source, three functions and a print."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "plan"


def build(env):
    (env.from_collection([1, 2, 3]).map(lambda x: x).filter(lambda x: True).flat_map(lambda x: [x]).print())
