"""The checkpoints and savepoints of a running job: requested, performed, retained."""
