"""A tag's id is not None."""

from pyflink.datastream import OutputTag

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "facts"


def build(env):
    return [OutputTag(None).tag_id]
