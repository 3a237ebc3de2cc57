"""JSON: rows as single messages, and as lines of files."""

from ekorn.connectors.formats.json_files import JsonBulkWriters
from ekorn.connectors.formats.json_rows import JsonRowDeserializationSchema, JsonRowSerializationSchema

__all__ = ["JsonBulkWriters", "JsonRowDeserializationSchema", "JsonRowSerializationSchema"]
