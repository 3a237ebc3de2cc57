"""Benchmark workload: map, filter, map, flat_map."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return (env.from_collection(list(range(2000)))
            .map(lambda i: (f"user_{i * 7919 % 100}", i))
            .filter(lambda pair: pair[1] % 2 == 0)
            .map(lambda pair: (pair[0], pair[1] * 3))
            .flat_map(lambda pair: [pair, (pair[0], -pair[1])]))
