"""Avro: schemas, the type of generic records, which are dicts, files, and rows as single messages."""

from ekorn.connectors.formats.avro_files import AvroBulkWriters, AvroInputFormat, AvroReaderFormat
from ekorn.connectors.formats.avro_rows import AvroRowDeserializationSchema, AvroRowSerializationSchema
from ekorn.connectors.formats.schema_registry import (
    ConfluentRegistryAvroDeserializationSchema,
    ConfluentRegistryAvroSerializationSchema,
    HttpSchemaRegistry,
    SchemaRegistryClient,
)
from ekorn.types.avro_schema import AvroSchema, GenericRecordAvroTypeInfo

__all__ = [
    "AvroBulkWriters",
    "AvroInputFormat",
    "AvroReaderFormat",
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "AvroSchema",
    "ConfluentRegistryAvroDeserializationSchema",
    "ConfluentRegistryAvroSerializationSchema",
    "GenericRecordAvroTypeInfo",
    "HttpSchemaRegistry",
    "SchemaRegistryClient",
]
