"""A plain stream united with a keyed one."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


def build(env):
    plain = env.from_collection([("a", 1), ("b", 2)])
    keyed = env.from_collection([("a", 3)]).key_by(lambda x: x[0])
    return plain.union(keyed).map(lambda x: x)
