"""The client of a service: submits programs, and controls their jobs."""
