"""A chain of map, filter, flat_map and map."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return (env.from_collection(list(range(10)))
            .map(lambda i: (f"user_{i % 3}", i))
            .filter(lambda pair: pair[1] % 2 == 0)
            .flat_map(lambda pair: [pair, (pair[0], -pair[1])])
            .map(lambda pair: f"{pair[0]}={pair[1]}"))
