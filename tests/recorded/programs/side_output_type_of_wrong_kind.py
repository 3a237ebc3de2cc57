"""A tag's type is a type."""

from pyflink.datastream import OutputTag

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "facts"


def build(env):
    return [OutputTag("tag", int).tag_id]
