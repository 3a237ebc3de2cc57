"""`DataSetCore`: an operator of a DataSet program as it is drawn, with what it reads. `DataSet` adds the methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, Self

from ekorn.batch.plan.data_set_specs import Spec
from ekorn.batch.plan.record_keys import FieldKeys
from ekorn.batch.program.annotated_operator import AnnotatedOperator
from ekorn.batch.program.call_site import call_site
from ekorn.batch.program.iteration_scope import scope_of
from ekorn.errors import InvalidProgramError
from ekorn.program.checks.argument_checks import check_output_type
from ekorn.program.checks.attribute_suggestions import SuggestsMethods
from ekorn.types.type_information import TypeInformation

if TYPE_CHECKING:
    from ekorn.batch.program.data_set import DataSet
    from ekorn.batch.program.execution_environment import ExecutionEnvironment

__all__ = ["DataSetCore"]

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
            raise ValueError(f"with_broadcast_set() takes a name that is not empty, got {name!r}")
        if data.solution_keys is not None:
            raise InvalidProgramError("with_broadcast_set(): a solution set can only be joined and co-grouped")
        if _is_made_from(data, self):
            raise InvalidProgramError(
                f"with_broadcast_set(): {data.get_name()} is made from {self.get_name()}, so that cannot wait for it; "
                "make the variable from other data sets"
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
        raise TypeError("the records of a DataSet are known when the program has run: collect() returns them as a list")

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a DataSet is part of the program, not of a function: collect() it first, or use with_broadcast_set()"
        )

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
