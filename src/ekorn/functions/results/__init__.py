"""What a program learns of its job: status, result, accumulators."""
