"""Runs in Spark's Python daemon, with any interpreter: nothing here imports tamias by itself."""
