"""Avro, at PyFlink's path: schemas and the type of generic records, which are dicts here."""

from tamias.types.avro_schema import AvroSchema, GenericRecordAvroTypeInfo

__all__ = ["AvroSchema", "GenericRecordAvroTypeInfo"]
