"""The environment of a program: its settings, its sources, and the jobs that it submits."""
