"""Runs in the driver: the Spark session, the slots on a cluster, one Spark job per epoch."""
