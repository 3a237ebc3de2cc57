"""Connectors: sources, sinks and formats. Splits are read and files are written in the SLOT process.

| modules | |
|---|---|
| `collection_source`, `number_seq`, `datagen` | sources that need no other system |
| `file_source`, `stream_formats`, `text_lines`, `file_bytes`, `open_files` | from files to records |
| `file_sink`, `streaming_file_sink`, `file_writer`, `compaction` | the file sink |
| `bucket_assigners`, `rolling_policies` | which file a record goes to, and when the file ends |
| `part_store`, `part_files`, `remote_parts`, `multipart_parts`, `bulk_parts` | its part files, by kind of storage |
| `file_addresses` | the paths and URLs that programs give |
| `delivery` | delivery guarantees |
| `formats/` | between records and bytes: CSV, JSON, Avro, Parquet, ORC |
"""
