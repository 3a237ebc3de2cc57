"""The engine on Spark, by process: `driver_side` runs in the driver, `task_side` in Spark's Python workers."""
