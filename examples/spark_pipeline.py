"""A stateful step inside a Structured Streaming pipeline: Spark reads clicks, a job finds visits, Spark counts them.

    python examples/spark_pipeline.py /tmp/clicks

Put files with lines such as {"user": "ada", "page": "/nuts"} into <folder>/clicks, and see the visits. A visit ends
with the page /pay. `pipeline` is what a program of your own would have.
"""

from __future__ import annotations

import sys
from typing import Any

from ekorn.common import Configuration, JobClient, Types
from ekorn.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from ekorn.datastream.state import ListStateDescriptor
from ekorn.table import Row


class Visits(KeyedProcessFunction):
    """Collects the pages of a user until the user pays."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.pages = runtime_context.get_list_state(ListStateDescriptor("pages", Types.STRING()))

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Any:
        self.pages.add(value.page)
        if value.page == "/pay":
            yield Row(value.user, len(list(self.pages.get())))
            self.pages.clear()


def pipeline(spark: Any, folder: str, savepoint: str | None = None) -> tuple[JobClient, Any]:
    """Start the job; return its client and the streaming DataFrame of the visits."""
    configuration = Configuration().set_string("execution.checkpointing.interval", "500 ms")
    configuration.set_string("execution.checkpointing.dir", f"file://{folder}/checkpoints")
    if savepoint is not None:
        configuration.set_string("execution.savepoint.path", savepoint)
    env = StreamExecutionEnvironment.get_execution_environment(configuration, spark=spark).set_parallelism(2)

    clicks = spark.readStream.schema("user string, page string").json(f"{folder}/clicks")
    visit = Types.ROW_NAMED(["user", "pages"], [Types.STRING(), Types.INT()])
    visits = (
        env.from_streaming_data_frame(clicks, f"{folder}/clicks-progress", source_name="clicks")
        .key_by(lambda click: click.user)
        .process(Visits(), output_type=visit)
        .uid("visits")
    )
    frame = visits.to_streaming_data_frame(path=f"{folder}/visits")
    return env.execute_async("visits"), frame


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[*]").getOrCreate()
    client, found = pipeline(session, sys.argv[1])
    console = found.writeStream.format("console").option("checkpointLocation", f"{sys.argv[1]}/console")
    console.start()
    client.get_job_execution_result().result()
