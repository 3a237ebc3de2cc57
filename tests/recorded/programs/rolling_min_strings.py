"""min and max of strings."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [("a", "m"), ("a", "b"), ("a", "z")]
    return env.from_collection(values).key_by(lambda x: x[0]).min(1).key_by(lambda x: x[0]).max(1)
