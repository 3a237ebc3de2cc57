"""The parameters of one operator, which `with_parameters` set, as a function reads them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ekorn.config.configuration import Configuration


class OperatorParameters(ABC):
    """Reads the operator's parameters with the getters of `Configuration`.

    In Java's DataSet API and in older versions of the DataStream API, `open` is given the `Configuration` of the
    operator instead of the runtime context. A runtime context has these getters, so `open(self, config)` may be written
    either way:

        class MyFilter(FilterFunction):
            def open(self, config):
                self.limit = config.get_integer("limit", 0)

        numbers.filter(MyFilter()).with_parameters(Configuration().set_integer("limit", 2))
    """

    @abstractmethod
    def get_operator_parameters(self) -> Configuration:
        """Return the parameters given to the operator by `with_parameters`; empty by default."""

    def get_string(self, key: str, default_value: str | None = None) -> Any:
        """Return a parameter as text, or the default if it is not set."""
        return self.get_operator_parameters().get_string(key, default_value)

    def get_integer(self, key: str, default_value: int | None = None) -> Any:
        """Return a parameter as a whole number, or the default if it is not set."""
        return self.get_operator_parameters().get_integer(key, default_value)

    def get_boolean(self, key: str, default_value: bool | None = None) -> Any:
        """Return a parameter as true or false, or the default if it is not set."""
        return self.get_operator_parameters().get_boolean(key, default_value)

    def get_float(self, key: str, default_value: float | None = None) -> Any:
        """Return a parameter as a number, or the default if it is not set."""
        return self.get_operator_parameters().get_float(key, default_value)

    def contains_key(self, key: str) -> bool:
        """Return whether a parameter is set."""
        return self.get_operator_parameters().contains_key(key)

    def key_set(self) -> set[str]:
        """Return the names of all parameters that are set."""
        return self.get_operator_parameters().key_set()

    def to_dict(self) -> dict[str, str]:
        """Return every parameter with its value as text."""
        return self.get_operator_parameters().to_dict()
