"""`InputDependencyConstraint`: how many inputs of a vertex must be ready before it starts."""

from ekorn.config.choices import InputDependencyConstraint

__all__ = ["InputDependencyConstraint"]
