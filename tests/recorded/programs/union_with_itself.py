"""A stream united with itself gives every record twice."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


def build(env):
    letters = env.from_collection(["a", "b"])
    return letters.union(letters).map(lambda x: x)
