"""What the driver remembers about a job for people and tools to look at."""
