"""The loop of one job: attempts, epochs, and what happens between epochs."""
