"""Tables of lakes: Delta and Iceberg, one commit per checkpoint. Parquet files are written in the SLOT process.

| modules | |
|---|---|
| `data_files` | Parquet files that no reader of the table sees until they are committed |
| `data_folders` | where they lie: behind a path, or on an object store |
| `table_partitions` | to which partition of a table a row belongs |
| `delta`, `iceberg` | a sink and a source each |
| `lake_source` | what the two sources share: from the columns of a table to rows |
"""
