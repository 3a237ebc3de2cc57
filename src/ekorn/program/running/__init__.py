"""What a program holds of its running jobs: clients, futures, results, Ctrl-C."""
