"""What a program can set on an operator after it was drawn: name, parallelism, parameters, type."""

from __future__ import annotations

from typing import Self

from ekorn.config.configuration import Configuration
from ekorn.graph.stream_graph import checked_parallelism
from ekorn.program.checks.argument_checks import check_output_type
from ekorn.types.type_information import TypeInformation

__all__ = ["DataSetSettings"]


class DataSetSettings:
    """The settings of an operator. They may change until the program runs."""

    def __init__(self, default_name: str, known_type: TypeInformation | None) -> None:
        self._name = default_name
        self._parallelism: int | None = None
        self._parameters: dict[str, str] = {}
        self._known_type = known_type
        self._declares_type = False
        self._given_fields: dict[int, tuple[str, ...]] = {}  # by number of the input: `with_forwarded_fields`

    def name(self, name: str) -> Self:
        """Set the name that errors and plans show."""
        if not isinstance(name, str) or not name:
            raise ValueError(f"a name is a string that is not empty, got {name!r}")
        self._name = name
        return self

    def get_name(self) -> str:
        """Return the operator's name."""
        return self._name

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the number of subtasks; -1 stands for the environment's parallelism."""
        self._parallelism = checked_parallelism(parallelism)
        return self

    def get_parallelism(self) -> int:
        """Return the number of subtasks that was set; -1 if the environment's parallelism applies."""
        return -1 if self._parallelism is None else self._parallelism

    def with_parameters(self, parameters: Configuration) -> Self:
        """Give the function a configuration: `get_runtime_context().get_operator_parameters()` returns it."""
        if not isinstance(parameters, Configuration):
            raise TypeError(f"with_parameters() takes a Configuration, got {parameters!r}")
        self._parameters = parameters.to_dict()
        return self

    @property
    def parameters(self) -> dict[str, str]:
        """Return what `with_parameters` gave."""
        return dict(self._parameters)

    @property
    def declares_type(self) -> bool:
        """Return whether the program declared the type of the records."""
        return self._declares_type

    def returns(self, type_info: TypeInformation) -> Self:
        """Declare the type of the results. They are checked against it, and printed as the type prints them."""
        check_output_type("returns", type_info, "type")
        self._known_type = type_info
        self._declares_type = type_info is not None
        return self

    def get_type(self) -> TypeInformation | None:
        """Return the type of the records as far as it is known."""
        return self._known_type
