"""Runs the subtasks of a slot epoch by epoch: each Spark task asks for one subtask's epoch and gets its output."""
