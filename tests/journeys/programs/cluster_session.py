"""A PySpark user's program on a standalone cluster: one session after the other, each with another Python."""

import os
import sys

from pyspark.sql import SparkSession

from ekorn.common import RestartStrategies
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.state import ValueStateDescriptor

master, *pythons = sys.argv[1:]


class Count(KeyedProcessFunction):
    """Counts the records of each key."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield value, self.count.value(), sys.executable


for python in pythons:
    print("---", python)
    os.environ["PYSPARK_PYTHON"] = python
    builder = SparkSession.builder.master(master).config("spark.driver.host", "127.0.0.1")
    spark = builder.config("spark.executor.memory", "512m").config("spark.ui.enabled", "false").getOrCreate()
    print("frames before:", spark.range(10).count())
    env = StreamExecutionEnvironment.get_execution_environment(spark=spark)
    env.set_parallelism(2)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1_000_000, 100))
    counted = env.from_collection(["acorn", "walnut", "acorn"]).key_by(lambda word: word).process(Count())
    try:
        with counted.execute_and_collect("nuts") as found:
            print(*sorted(found), sep="\n")
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
        env.close()
    print("frames after:", spark.range(20).count())
    spark.stop()
