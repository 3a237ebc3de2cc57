"""The life of a subtask of a job that runs continuously: an epoch ends where its mark stands in the stream."""
