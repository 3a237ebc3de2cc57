"""A pickled field inside a TUPLE, collected."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "The field is collected as its pickled bytes."


def build(env):
    types = Types.TUPLE([Types.INT(), Types.PICKLED_BYTE_ARRAY()])
    return env.from_collection([1]).map(lambda x: (x, {"any": [x, None]}), types)
