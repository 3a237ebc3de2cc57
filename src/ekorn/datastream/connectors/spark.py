"""What programs of Spark need to read the output of a job."""

from ekorn.engine.spark.data_frames.result_frames import register_ekorn_source

__all__ = ["register_ekorn_source"]
