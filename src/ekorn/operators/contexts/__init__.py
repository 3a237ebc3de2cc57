"""What functions are handed at open, with each record, and at a checkpoint."""
