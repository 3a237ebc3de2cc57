"""A file sink in BATCH mode."""

from pyflink.common import Encoder, Types
from pyflink.datastream.connectors.file_system import FileSink

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True
RESULT = "files"


def build(env, directory):
    sink = FileSink.for_row_format(directory, Encoder.simple_string_encoder()).build()
    (env.from_collection([("b", 1), ("a", 2), ("b", 3)]).key_by(lambda x: x[0]).sum(1)
     .map(lambda x: f"{x[0]} {x[1]}", Types.STRING()).sink_to(sink))
