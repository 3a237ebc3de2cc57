"""map, flat_map and filter with plain functions on a keyed stream."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    stream = env.from_collection(["b", "a", "b", "c"])
    stream = stream.key_by(lambda x: x).map(lambda x: x + "!")
    stream = stream.key_by(lambda x: x).flat_map(lambda x: [x, x])
    return stream.key_by(lambda x: x).filter(lambda x: x != "a!")
