"""Runs in Spark's Python daemon, with any interpreter: nothing here imports ekorn by itself."""
