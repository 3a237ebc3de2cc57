"""Partitioned and united streams are not operators and have no name."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "facts"
QUIRK = "The error is py4j's about a missing Java method."


def build(env):
    source = env.from_collection([1]).map(lambda x: x)
    return [type(problem_of(stream.get_name)).__name__ for stream in (
        source.rebalance(), source.broadcast(), source.shuffle(), source.rescale(), source.forward(),
        source.union(source))]


def problem_of(call):
    try:
        call()
    except Exception as problem:
        return problem
    return None
