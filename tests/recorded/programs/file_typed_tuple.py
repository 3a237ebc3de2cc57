"""A file sink of typed tuples."""

from pyflink.common import Encoder, Types
from pyflink.datastream.connectors.file_system import FileSink

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False
RESULT = "files"


def build(env, directory):
    sink = FileSink.for_row_format(directory, Encoder.simple_string_encoder()).build()
    types = Types.TUPLE([Types.INT(), Types.STRING(), Types.BOOLEAN(), Types.DOUBLE()])
    env.from_collection([(1, "a", True, 1e10), (2, "b c", False, 0.5)], types).sink_to(sink)
