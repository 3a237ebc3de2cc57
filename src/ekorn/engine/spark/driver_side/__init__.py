"""Runs in the driver: the Spark session, the slots on a cluster, the Spark jobs of both engines."""
