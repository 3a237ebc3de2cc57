"""Delta and Iceberg tables, with one commit per checkpoint. Parquet files are written in the SLOT process.

| modules | |
|---|---|
| `data_files` | Parquet files that no reader of the table sees until they are committed |
| `data_folders` | where they lie: behind a path, or on an object store |
| `table_partitions` | the partition of a table that a row belongs to |
| `delta`, `iceberg` | a sink and a source each |
| `lake_source` | the base of the two sources: from the columns of a table to rows |
"""
