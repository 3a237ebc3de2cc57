"""What programs of Spark need to read the output of a job."""

from tamias.engine.spark.data_frames.result_frames import register_tamias_source

__all__ = ["register_tamias_source"]
