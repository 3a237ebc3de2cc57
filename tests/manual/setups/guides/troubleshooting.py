from ekorn.common.serialization import Encoder
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.file_system import FileSink

env = StreamExecutionEnvironment.get_execution_environment()
lines = env.from_collection(["1", "two"])
parse = int
rejected = FileSink.for_row_format("rejected", Encoder.simple_string_encoder()).build()
