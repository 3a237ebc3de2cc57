"""Sources at the head of a chain: split by split, pushed by a thread, or in steps."""
