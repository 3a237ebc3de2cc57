"""Rolling aggregates in BATCH mode at parallelism 2."""

PARALLELISM = 2
MODE = "BATCH"
ORDERED = False


def build(env):
    return env.from_collection([(f"k{i % 7}", i) for i in range(30)]).key_by(lambda x: x[0]).sum(1)
