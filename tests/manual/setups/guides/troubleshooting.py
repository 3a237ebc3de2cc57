from tamias.common.serialization import Encoder
from tamias.datastream import StreamExecutionEnvironment
from tamias.datastream.connectors.file_system import FileSink

env = StreamExecutionEnvironment.get_execution_environment()
lines = env.from_collection(["1", "two"])
parse = int
rejected = FileSink.for_row_format("rejected", Encoder.simple_string_encoder()).build()
