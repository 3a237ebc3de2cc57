"""Metric reporters: they read the driver's statistics of its jobs and send them to monitoring systems."""
