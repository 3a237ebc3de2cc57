"""Metric reporters: they read what the driver remembers of its jobs and send it to monitoring systems."""
