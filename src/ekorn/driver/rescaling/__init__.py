"""Changes of a running job's parallelism: on request, by load, by the size of the cluster."""
