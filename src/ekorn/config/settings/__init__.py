"""Settings of jobs and processes: read from a configuration once, checked and frozen."""
