"""Writes new savepoints: from rows, from streams, and from the operators of an existing one."""
