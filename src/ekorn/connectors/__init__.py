"""Connectors: sources, sinks and formats. Splits are read and files are written in the SLOT process.

| modules | |
|---|---|
| `collection_source`, `number_seq`, `datagen`, `row_generator` | sources that need no other system |
| `socket_source`, `http_lookup`, `hybrid_source` | a socket, a web service, one source after another |
| `delivery` | delivery guarantees |
| `files/` | files: `file_source` and what it reads with, `file_sink` and its part files by kind of storage |
| `formats/` | between records and bytes: CSV, JSON, Avro, Parquet, ORC |
| `jdbc/`, `kafka/`, `lakes/` | databases, Kafka, tables of Delta Lake and Iceberg |
| `data_frames/` | the rows of Spark's DataFrames |
"""
