"""Sinks, their transactions, and output for the driver."""
