"""Benchmark workload: a rolling sum per key."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    pairs = env.from_collection([(f"user_{i * 7919 % 100}", i) for i in range(2000)])
    return pairs.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
