"""A file sink with the simple string encoder, of untyped records."""

from pyflink.common import Encoder
from pyflink.datastream.connectors.file_system import FileSink

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False
RESULT = "files"
QUIRK = "Untyped records are byte arrays to the sink, and Java writes their identity."


def build(env, directory):
    sink = FileSink.for_row_format(directory, Encoder.simple_string_encoder()).build()
    env.from_collection([("a", 1), "text"]).map(lambda x: x).sink_to(sink)
