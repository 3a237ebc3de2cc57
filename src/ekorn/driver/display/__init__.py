"""What a person in front of a running job sees: lines, progress, notebooks."""
