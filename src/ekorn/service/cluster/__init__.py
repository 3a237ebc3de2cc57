"""Services that stand by for each other: the lease, shared jobs, takeover."""
