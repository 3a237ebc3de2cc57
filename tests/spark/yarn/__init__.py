"""A real YARN on this machine."""
