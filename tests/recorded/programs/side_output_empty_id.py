"""A tag has an id."""

from pyflink.datastream import OutputTag

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "facts"


def build(env):
    return [OutputTag("").tag_id]
