"""What a job sends to the driver: printed lines, collected records, accumulators."""
