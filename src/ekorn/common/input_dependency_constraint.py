"""`InputDependencyConstraint`: how many inputs of a vertex must be ready before it starts."""

from ekorn.config.input_dependency_constraint import InputDependencyConstraint

__all__ = ["InputDependencyConstraint"]
