"""State as programs see it: descriptors, handles, time to live, and functions that take part in checkpoints."""
