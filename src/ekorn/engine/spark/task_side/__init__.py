"""Runs in Spark's Python workers: carries blobs to the slots and back, and starts slots on executors."""
