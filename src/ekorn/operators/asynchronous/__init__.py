"""Asynchronous I/O: requests in flight while the next records are processed."""
