"""Operators on streams of columns. Each takes a batch at a time; the chain's loop runs over batches."""
