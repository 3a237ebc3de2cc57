"""`DataSetCore`: an operator of a DataSet program as it is drawn, with what it reads. `DataSet` adds the methods."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self

import ekorn
from ekorn.batch.plan.data_set_specs import Spec
from ekorn.batch.plan.partitioning import ForwardedFields
from ekorn.batch.plan.record_keys import FieldKeys, FieldPath
from ekorn.batch.program.iteration_scope import scope_of
from ekorn.batch.program.key_arguments import checked_path, type_at
from ekorn.config.configuration import Configuration
from ekorn.errors import InvalidProgramError
from ekorn.functions.data_sets.field_annotations import FieldAnnotations, annotations_of
from ekorn.graph.stream_graph import checked_parallelism
from ekorn.program.checks.argument_checks import check_output_type
from ekorn.program.checks.attribute_suggestions import SuggestsMethods
from ekorn.types.type_information import TypeInformation

if TYPE_CHECKING:
    from ekorn.batch.program.data_set import DataSet
    from ekorn.batch.program.execution_environment import ExecutionEnvironment

__all__ = ["AnnotatedOperator", "DataSetCore", "DataSetSettings", "call_site", "parsed_annotations", "parsed_forwarded"]


class DataSetSettings:
    """The settings of an operator: name, parallelism, parameters, type. They may change until the program runs."""

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
            raise ValueError(f"a name must be a non-empty string, got {name!r}")
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


class AnnotatedOperator(DataSetSettings):
    """The part of `DataSet` that takes annotations. `functions/data_sets/field_annotations.py` explains them.

    Attributes:
        spec: What the operator does.
        inputs: The operators that it reads.
        forwarded: The fields that the operator itself copies, whatever its function; empty for most.
    """

    spec: Any
    inputs: tuple[Any, ...]
    forwarded: tuple[ForwardedFields, ...] = ()

    def with_forwarded_fields(self, *fields: str) -> Self:
        """Say which fields the function copies unchanged: ``"f0"``, ``"f0->f2"``, ``"*"``."""
        return self._with_forwarded("with_forwarded_fields", 0, 1, fields)

    def with_forwarded_fields_first(self, *fields: str) -> Self:
        """Say which fields of the first input the function copies unchanged."""
        return self._with_forwarded("with_forwarded_fields_first", 0, 2, fields)

    def with_forwarded_fields_second(self, *fields: str) -> Self:
        """Say which fields of the second input the function copies unchanged."""
        return self._with_forwarded("with_forwarded_fields_second", 1, 2, fields)

    def copied_fields(self) -> tuple[ForwardedFields, ...]:
        """Return the fields that are copied from each input; empty if nothing is known.

        Raises:
            InvalidProgramError: An annotation does not fit the types.
        """
        if self.forwarded:
            return self.forwarded
        sides = [self._copied(side) for side in range(len(self.inputs))]
        return tuple([each or ForwardedFields() for each in sides]) if any(sides) else ()

    def _copied(self, side: int) -> ForwardedFields | None:
        given = self._given_fields.get(side)
        input_type = self.inputs[side].get_type()
        if given is not None:
            return parsed_forwarded(self.get_name(), given, input_type, self.get_type())
        annotations = annotations_of(getattr(self.spec, "function", None), side)
        return parsed_annotations(self.get_name(), annotations, input_type, self.get_type())

    def _with_forwarded(self, call: str, side: int, inputs: int, fields: tuple[str, ...]) -> Self:
        function = getattr(self.spec, "function", None)
        if function is None or len(self.inputs) != inputs:
            wanted = "one input" if inputs == 1 else "two inputs"
            raise InvalidProgramError(f"{call}(): {self.get_name()} has no function of {wanted}")
        known = annotations_of(function, side)
        if known.forwarded is not None or known.non_forwarded is not None:
            raise InvalidProgramError(
                f"{call}(): the function's class already declares forwarded fields; keep one declaration"
            )
        if not fields or not all(isinstance(each, str) for each in fields):
            raise TypeError(f"{call}() takes fields such as 'f0' or 'f0->f1', got {fields!r}")
        self._given_fields[side] = fields
        self._copied(side)  # checks the fields now
        return self


_POSITION = re.compile(r"f?(\d+)")


def parsed_annotations(
    call: str, annotations: FieldAnnotations, input_type: TypeInformation | None, output_type: TypeInformation | None
) -> ForwardedFields | None:
    """Return what the annotations of a function say of one input; None if they say nothing of copies.

    Raises:
        InvalidProgramError: A field does not exist, or is copied to a place of another type.
    """
    for field in _expressions(annotations.read or ()):
        _path(call, field, input_type)
    if annotations.forwarded is not None:
        return parsed_forwarded(call, annotations.forwarded, input_type, output_type)
    if annotations.non_forwarded is None:
        return None
    if input_type is not None and output_type is not None and input_type != output_type:
        raise InvalidProgramError(
            f"{call}: non-forwarded fields need an output of the input's type {input_type}, and it is {output_type}"
        )
    changed = [_path(call, field, input_type) for field in _expressions(annotations.non_forwarded)]
    return ForwardedFields(everything=True, changed=frozenset(changed))


def parsed_forwarded(
    call: str, fields: Sequence[str], input_type: TypeInformation | None, output_type: TypeInformation | None
) -> ForwardedFields:
    """Return the copies that expressions such as ``"f0; f1->f2"`` describe.

    Raises:
        InvalidProgramError: A field does not exist, or is copied to a place of another type.
    """
    moved: dict[FieldPath, tuple[FieldPath, ...]] = {}
    for expression in _expressions(fields):
        source, arrow, target = (part.strip() for part in expression.partition("->"))
        before = _path(call, source, input_type)
        after = _path(call, target if arrow else source, output_type)
        types = type_at(input_type, before), type_at(output_type, after)
        if None not in types and types[0] != types[1]:
            raise InvalidProgramError(
                f"{call}: {expression!r} copies a field of type {types[0]} to one of type {types[1]}"
            )
        moved[before] = (*moved.get(before, ()), after)
    if moved.get(()) == ((),):
        return ForwardedFields(everything=True)
    return ForwardedFields(moved)


def _expressions(fields: Sequence[str]) -> list[str]:
    return [part.strip() for text in fields for part in text.split(";") if part.strip()]


def _path(call: str, field: str, type_info: TypeInformation | None) -> FieldPath:
    if not field:
        raise InvalidProgramError(f"{call}: a field is missing; write 'f0', 'f0->f1' or '*'")
    if type_info is None and (position := _POSITION.fullmatch(field)):
        return (int(position[1]),)
    return checked_path(call, field, type_info)


_INSTEAD_OF = {  # methods of streams, of groups, and of Spark's RDDs and DataFrames
    "key_by": "group_by(...) groups the records of a data set",
    "execute_and_collect": "collect() runs the program and returns the records",
    "sink_to": "output(...) writes to an OutputFormat, write_as_text() and others write files",
    "add_sink": "output(...) writes to an OutputFormat or calls a function with each record",
    "sort_group": "call group_by(...) before sort_group()",
    "reduce_by_key": "group_by(...).reduce(...) reduces the records of each key",
    "show": "print() runs the program and prints the records",
    "take": "first(n).collect() returns some records",
    "to_df": "to_data_frame() makes a DataFrame of Spark",
}


class DataSetCore(AnnotatedOperator, SuggestsMethods):
    """What the parts of `DataSet` share: the operator, its inputs, and how the next operator is drawn.

    Attributes:
        environment: The environment that runs it.
        spec: What its operator does.
        inputs: The data sets that its operator reads.
        site: The line of the program that drew it.
        scope: The iteration that it is inside of.
        broadcasts: The data sets that its function reads whole, by the name of the variable.
        solution_keys: The keys of a solution set; None for any other data set.
    """

    solution_keys: FieldKeys | None = None

    def __init__(
        self,
        environment: ExecutionEnvironment,
        kind: str,
        spec: Spec,
        inputs: tuple[DataSetCore, ...] = (),
        known_type: TypeInformation | None = None,
    ) -> None:
        self.environment = environment
        self.spec = spec
        self.inputs = inputs
        self.site = call_site()
        self.scope = scope_of(kind, spec, inputs)
        self.broadcasts: dict[str, DataSetCore] = {}
        super().__init__(f"{kind} at {self.site}", known_type)

    @property
    def where(self) -> str:
        """Return the operator's name, and the line of the program that drew it."""
        name = self.get_name()
        return repr(name) if name.endswith(self.site) else f"{name!r} (written at {self.site})"

    def upstream(self) -> tuple[DataSetCore, ...]:
        """Return every data set that this one needs: its inputs and its broadcast variables."""
        return (*self.inputs, *self.broadcasts.values())

    def with_broadcast_set(self, data: DataSetCore, name: str) -> Self:
        """Let the function read a small data set whole: `get_runtime_context().get_broadcast_variable(name)`.

        The data set is computed before the operator starts. A second one of the same name replaces the first.
        """
        if getattr(self.spec, "function", None) is None:
            raise InvalidProgramError(
                f"with_broadcast_set(): {self.get_name()} has no function that could read a variable; "
                "call it on the operator whose function reads it"
            )
        self.check_other("with_broadcast_set", data)
        if not isinstance(name, str) or not name:
            raise ValueError(f"with_broadcast_set() takes a non-empty name, got {name!r}")
        if data.solution_keys is not None:
            raise InvalidProgramError("with_broadcast_set(): a solution set can only be joined and co-grouped")
        if _is_made_from(data, self):
            raise InvalidProgramError(
                f"with_broadcast_set(): {data.get_name()} is derived from {self.get_name()}, which therefore cannot "
                "wait for it; derive the variable from other data sets"
            )
        broadcasts = {**self.broadcasts, name: data}
        self.scope = scope_of(self.get_name(), self.spec, (*self.inputs, *broadcasts.values()))
        self.broadcasts = broadcasts
        return self

    def get_execution_environment(self) -> ExecutionEnvironment:
        """Return the environment that runs this data set."""
        return self.environment

    def next(self, kind: str, spec: Spec, known_type: TypeInformation | None = None) -> DataSet:
        """Return the data set of an operator that reads this one alone."""
        return self.environment.kinds.data_set(self, kind, spec, known_type)

    def declared(self, call: str, output_type: TypeInformation | None) -> Self:
        """Declare the type that a method was given, if it was given one."""
        check_output_type(call, output_type)
        return self if output_type is None else self.returns(output_type)

    def check_other(self, call: str, other: object) -> None:
        """Check that an argument is a data set of the same environment."""
        if not isinstance(other, DataSetCore):
            raise TypeError(f"{call}() takes a DataSet, got {other!r}")
        if other.environment is not self.environment:
            raise InvalidProgramError(f"{call}(): the two data sets belong to different environments")

    def _instead_of(self, name: str) -> str | None:
        return _INSTEAD_OF.get(name)

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "the records of a DataSet are known only after the program has run: collect() returns them as a list"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError("a DataSet cannot be used inside a function: collect() it first, or use with_broadcast_set()")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.get_name()!r})"


def _is_made_from(data_set: DataSetCore, other: DataSetCore) -> bool:
    """Return whether a data set is another one, or needs it."""
    pending, seen = [data_set], {data_set}
    while pending:
        further = [each for each in pending.pop().upstream() if each not in seen]
        seen.update(further)
        pending += further
    return other in seen


_EKORN = os.path.dirname(ekorn.__file__) + os.sep


def call_site() -> str:
    """Return the file and line of the innermost caller outside of ekorn, such as ``job.py:12``."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_EKORN):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
