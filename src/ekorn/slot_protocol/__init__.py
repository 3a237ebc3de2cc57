"""The messages between driver, Spark's tasks and slots: requests, answers, events, deployments. Plain values."""
