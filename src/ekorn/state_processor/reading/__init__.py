"""Reads savepoints as data: entries, rows, streams and data sets."""
