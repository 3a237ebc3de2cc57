import os
from typing import Any

from pyspark.sql import SparkSession

from ekorn.common import Configuration, JobClient, Types
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.table import Row

__all__ = ["Any", "Configuration", "JobClient", "StreamExecutionEnvironment"]

folder = os.getcwd()
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
clicks = spark.createDataFrame([("ada", "/"), ("ben", "/"), ("ada", "/nuts")], "user string, page string")
clicks.createOrReplaceTempView("clicks")
spark.sql("DROP TABLE IF EXISTS counts")
counts = Types.ROW_NAMED(["user", "clicks"], [Types.STRING(), Types.LONG()])


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield Row(value.user, self.count.value())


env = StreamExecutionEnvironment.get_execution_environment(spark=spark)
counted = env.from_data_frame(clicks).key_by(lambda row: row.user).process(Count(), output_type=counts)
counted.to_streaming_data_frame(path=f"{folder}/visits")
env.execute("visits of the page")
