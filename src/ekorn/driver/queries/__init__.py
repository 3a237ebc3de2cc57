"""Answers queries of a running job's state: the port for clients, and the way to the slots."""
