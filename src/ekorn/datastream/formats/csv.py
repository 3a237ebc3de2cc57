"""CSV: files, and single messages."""

from ekorn.connectors.formats.csv_files import CsvBulkWriters, CsvReaderFormat
from ekorn.connectors.formats.csv_rows import CsvRowDeserializationSchema, CsvRowSerializationSchema
from ekorn.connectors.formats.csv_schema import CsvSchema, CsvSchemaBuilder

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]
