"""What a keyed stream cannot do, and what it says."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "facts"


def build(env):
    keyed = env.from_collection([1]).key_by(lambda x: x)
    calls = {
        "name": lambda: keyed.name("n"), "get_name": keyed.get_name, "uid": lambda: keyed.uid("u"),
        "set_parallelism": lambda: keyed.set_parallelism(1),
        "set_max_parallelism": lambda: keyed.set_max_parallelism(1),
        "shuffle": keyed.shuffle, "rebalance": keyed.rebalance, "rescale": keyed.rescale, "forward": keyed.forward,
        "broadcast": keyed.broadcast, "partition_custom": lambda: keyed.partition_custom(lambda k, n: 0, lambda x: x),
        "start_new_chain": keyed.start_new_chain, "disable_chaining": keyed.disable_chaining,
        "slot_sharing_group": lambda: keyed.slot_sharing_group("g"),
        "force_non_parallel": keyed.force_non_parallel, "set_buffer_timeout": lambda: keyed.set_buffer_timeout(1),
        "cache": keyed.cache,
    }
    return [(name, type(problem).__name__, str(problem))
            for name, call in calls.items() for problem in [problem_of(call)]]


def problem_of(call):
    try:
        call()
    except Exception as problem:
        return problem
    return None
