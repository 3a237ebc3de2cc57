"""Connectors: sources, sinks and formats. Splits are read and files are written in the SLOT process.

| modules | |
|---|---|
| `collection_source`, `number_seq`, `datagen` | sources that need no other system |
| `file_source`, `text_lines`, `file_bytes` | from files to lines: which files, which lines, which bytes |
| `file_sink`, `streaming_file_sink`, `bucket_assigners`, `rolling_policies`, `part_files` | the file sink |
| `file_addresses` | the paths and URLs that programs give |
| `delivery` | delivery guarantees |
| `formats/` | schemas between records and bytes |
"""
