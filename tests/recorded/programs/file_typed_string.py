"""A file sink of strings, in order."""

from pyflink.common import Encoder, Types
from pyflink.datastream.connectors.file_system import FileSink

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "files"


def build(env, directory):
    sink = FileSink.for_row_format(directory, Encoder.simple_string_encoder()).build()
    env.from_collection(["b", "a", "", "é"], Types.STRING()).map(lambda x: x + "!", Types.STRING()).sink_to(sink)
