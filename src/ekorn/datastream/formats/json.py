"""JSON: rows as single messages."""

from ekorn.connectors.formats.json_rows import JsonRowDeserializationSchema, JsonRowSerializationSchema

__all__ = ["JsonRowDeserializationSchema", "JsonRowSerializationSchema"]
