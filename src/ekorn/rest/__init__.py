"""Flink's REST API over the jobs of a driver: the answers, and the routes that lead to them."""
