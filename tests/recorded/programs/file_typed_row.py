"""A file sink of typed rows."""

from pyflink.common import Encoder, Types
from pyflink.datastream.connectors.file_system import FileSink

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False
RESULT = "files"


def build(env, directory):
    sink = FileSink.for_row_format(directory, Encoder.simple_string_encoder()).build()
    types = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
    env.from_collection([(1, "a"), (2, None)], types).sink_to(sink)
