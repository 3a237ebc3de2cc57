"""Windows as programs see them: assigners, triggers, evictors and the functions over windows."""
