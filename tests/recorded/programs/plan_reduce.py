"""The execution plan of a rolling aggregate in BATCH mode."""

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True
RESULT = "plan"


def build(env):
    env.from_collection([("a", 1)]).key_by(lambda x: x[0]).sum(1).print()
