"""HTTP: a server that routes, authenticates and bounds requests, and a client. It knows nothing of jobs."""
