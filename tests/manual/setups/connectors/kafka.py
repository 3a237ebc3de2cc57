"""A serializer and a stream of the reader's own."""

from ekorn.common.serialization import SerializationSchema
from ekorn.datastream import StreamExecutionEnvironment


class ByUser(SerializationSchema):
    def serialize(self, value):
        return value.split()[0].encode()


alerts = StreamExecutionEnvironment.get_execution_environment().from_collection(["ada 17"])
