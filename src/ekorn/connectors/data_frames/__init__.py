"""Rows of DataFrames in files: what Spark and the slots hand to each other. Nothing here knows of Spark.

| module | |
|---|---|
| `parquet_rows` | rows from and to one Parquet file |
| `written_rows` | a bounded source: a set of files, written once |
| `row_batches` | batches of files, in their order, as an unbounded input |
| `lane_source`, `row_batches_source`, `offset_batches_source` | the sources that read such batches by lanes |
| `row_files_sink` | a sink: files that a completed checkpoint makes valid |
| `commit_log` | the order in which the files of a sink are read by a streaming query |
| `deferred_source` | a source whose input is made when its job is submitted |
| `pandas_rows` | rows from and to DataFrames of pandas |
"""
