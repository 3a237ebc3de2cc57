"""Formats of records, at PyFlink's paths."""
