"""The slot process: hosts subtasks with their state, and serves the driver and Spark's tasks."""
