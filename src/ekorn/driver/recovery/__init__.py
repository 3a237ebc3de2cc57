"""Recovery: whether a job restarts after a failure, and which checkpoint or savepoint it starts from."""
