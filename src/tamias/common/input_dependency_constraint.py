"""When a vertex may start, by how many of its inputs are ready."""

from tamias.config.input_dependency_constraint import InputDependencyConstraint

__all__ = ["InputDependencyConstraint"]
