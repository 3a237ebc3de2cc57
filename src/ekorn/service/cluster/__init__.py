"""Services that stand by for each other: the lease, the shared jobs, and the takeover."""
