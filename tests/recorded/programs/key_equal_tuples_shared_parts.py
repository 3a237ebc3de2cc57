"""Equal untyped tuple keys whose two parts are, or are not, one object, with another key in between."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "Untyped keys are compared as pickled bytes, and pickle writes a part seen before as a reference."


def build(env):
    def key(pair):
        part = "".join(["k", "ey"])
        return {"shared": (part, part), "apart": (part, "".join(["ke", "y"])), "": ()}[pair[0]]

    values = [("shared", 1), ("", 0), ("apart", 10), ("", 0), ("shared", 100), ("", 0), ("apart", 1000)]
    return env.from_collection(values).key_by(key).reduce(lambda a, b: (a[0], a[1] + b[1]))
