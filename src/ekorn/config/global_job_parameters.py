"""`GlobalJobParameters`: the parameters of a whole job, as a dict that is also read as a configuration."""

from __future__ import annotations

from typing import Any

from ekorn.config.configuration import Configuration
from ekorn.config.parameter_tool import ParameterTool

__all__ = ["GlobalJobParameters"]


class GlobalJobParameters(dict[str, str]):
    """What `set_global_job_parameters` was given, as text.

    In Java it is an object of the class that was set, and functions cast it to `Configuration` or `ParameterTool`. Here
    one object has the getters of both, beside those of a dict. A getter reads the text as another type, and returns
    the default if the parameter was not set.

    Example:
        >>> parameters = GlobalJobParameters({"limit": "5"})
        >>> parameters.get_integer("limit", 0), parameters.get_string("name", "none"), parameters["limit"]
        (5, 'none', '5')
    """

    def get_string(self, key: str, default_value: str | None = None) -> Any:
        """Return the value as text."""
        return self.get(key, default_value)

    def get_integer(self, key: str, default_value: int | None = None) -> Any:
        """Return the value as a whole number."""
        return self.to_configuration().get_integer(key, default_value)

    def get_int(self, key: str, default_value: int | None = None) -> Any:
        """Return the value as a whole number."""
        return self.get_integer(key, default_value)

    def get_long(self, key: str, default_value: int | None = None) -> Any:
        """Return the value as a whole number."""
        return self.get_integer(key, default_value)

    def get_float(self, key: str, default_value: float | None = None) -> Any:
        """Return the value as a number."""
        return self.to_configuration().get_float(key, default_value)

    def get_double(self, key: str, default_value: float | None = None) -> Any:
        """Return the value as a number."""
        return self.get_float(key, default_value)

    def get_boolean(self, key: str, default_value: bool | None = None) -> Any:
        """Return the value as true or false."""
        # A flag on the command line has no value, and is true.
        return ParameterTool(self).get_boolean(key) if key in self else default_value

    def get_required(self, key: str) -> str:
        """Return the value as text.

        Raises:
            ConfigurationError: The parameter was not set.
        """
        return ParameterTool(self).get_required(key)

    def has(self, key: str) -> bool:
        """Return whether the parameter was set."""
        return key in self

    def contains_key(self, key: str) -> bool:
        """Return whether the parameter was set."""
        return key in self

    def key_set(self) -> set[str]:
        """Return the names of all parameters."""
        return set(self)

    def to_map(self) -> dict[str, str]:
        """Return all parameters by name."""
        return dict(self)

    def to_dict(self) -> dict[str, str]:
        """Return all parameters by name."""
        return dict(self)

    def to_configuration(self) -> Configuration:
        """Return all parameters as a configuration."""
        return Configuration.from_dict(self)
