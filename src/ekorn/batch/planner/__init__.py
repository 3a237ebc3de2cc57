"""Translates a plan to RDDs and runs it on Spark. Runs in the driver."""
