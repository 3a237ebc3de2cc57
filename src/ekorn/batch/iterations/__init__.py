"""Runs iterations: the loop over supersteps, in the driver. Each superstep is one Spark job."""
