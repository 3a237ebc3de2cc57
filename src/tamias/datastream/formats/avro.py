"""Avro: schemas and the type of generic records, which are dicts."""

from tamias.types.avro_schema import AvroSchema, GenericRecordAvroTypeInfo

__all__ = ["AvroSchema", "GenericRecordAvroTypeInfo"]
