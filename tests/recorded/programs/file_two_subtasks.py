"""A file sink at parallelism 2."""

from pyflink.common import Encoder, Types
from pyflink.datastream.connectors.file_system import FileSink

PARALLELISM = 2
MODE = "STREAMING"
ORDERED = False
RESULT = "files"


def build(env, directory):
    sink = FileSink.for_row_format(directory, Encoder.simple_string_encoder()).build()
    env.from_collection([f"line {n}" for n in range(10)], Types.STRING()).sink_to(sink)
