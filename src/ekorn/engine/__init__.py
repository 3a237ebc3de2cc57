"""Engines host the subtasks of a job and run its epochs: on Spark, or in one process for tests."""
