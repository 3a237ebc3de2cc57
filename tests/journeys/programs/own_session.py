"""A PySpark user's program: the user's own session, with DataFrames before and after jobs of ekorn."""

import sys
import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").appName("nightly").getOrCreate()
schema = "customer string, cents int"
orders = spark.createDataFrame([("ada", 300), ("bob", 450), ("ada", 120), ("cyd", 80), ("bob", 50)], schema)
print("orders:", orders.count())

import logging  # noqa: E402

from ekorn.common import Configuration  # noqa: E402
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment  # noqa: E402
from ekorn.datastream.state import ValueStateDescriptor  # noqa: E402

log = logging.getLogger("ekorn.engine.spark")
log.setLevel(logging.INFO)
log.addHandler(logging.StreamHandler(sys.stdout))


class Total(KeyedProcessFunction):
    """Keeps the cents of each customer."""

    def open(self, runtime_context):
        self.cents = runtime_context.get_state(ValueStateDescriptor("cents"))

    def process_element(self, value, ctx):
        total = (self.cents.value() or 0) + value[1]
        self.cents.update(total)
        time.sleep(0.4)  # the stage takes two seconds: Spark would draw a bar for it
        yield value[0], total


def totals(env):
    """Return the total of each customer."""
    rows = [(row.customer, row.cents) for row in orders.collect()]
    with env.from_collection(rows).key_by(lambda row: row[0]).process(Total()).execute_and_collect("totals") as found:
        return dict(sorted(found))


def mark(text):
    """Write a line to standard error, between Spark's own."""
    print(text, file=sys.stderr, flush=True)


def mistake(make):
    """Print the error that a mistake gets."""
    try:
        make()
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
    else:
        print("no error")


# A job on the session that the program names. Spark draws no bar into its output.
mark("JOB BEGINS")
env = StreamExecutionEnvironment.get_execution_environment(spark=spark)
env.set_parallelism(1)
print("totals:", totals(env))
mark("JOB ENDED")

# The session is as it was: its own Python, its own stage bars, its DataFrames.
print(
    "python of the session's own tasks:", spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).first()
)
spark.range(1, numPartitions=1).selectExpr("java_method('java.lang.Thread', 'sleep', 2500L)").collect()
mark("BAR SHOWN")
print("rich:", [row.customer for row in orders.where("cents > 200").collect()])

print("--- the session is found without being named; settings that come too late are named")
late = Configuration()
late.set_string("spark.master", "local[4]")
late.set_string("spark.executor.memory", "8g")
print("totals:", totals(StreamExecutionEnvironment.get_execution_environment(late).set_parallelism(2)))

print("--- something else is given for the session")
mistake(lambda: StreamExecutionEnvironment.get_execution_environment(spark="local[2]"))

print("--- a function uses the session")
mistake(lambda: env.from_collection([1, 2]).map(lambda number: spark.range(number).count()))

print("--- the session is stopped")
env.close()
spark.stop()
env.from_collection([1, 2]).print()
mistake(env.execute)
