"""Tables of lakes: Delta and Iceberg, one commit per checkpoint. Parquet files are written in the SLOT process.

| modules | |
|---|---|
| `data_files` | Parquet files that no reader of the table sees until they are committed |
| `delta`, `iceberg` | a sink and a source each |
| `arrow_rows` | from the columns of a table to rows |
"""
