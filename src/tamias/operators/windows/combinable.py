"""Which contents of windows can be made of parts, and how those are kept in slices."""

from __future__ import annotations

from tamias.functions.record_fields import Field
from tamias.functions.record_functions import AggregateFunction, ReduceFunction
from tamias.functions.rolling_aggregates import MaxByFunction, MaxFunction, MinByFunction, MinFunction, SumFunction
from tamias.graph.specs import AggregateContents, FoldContents, ListContents, ReduceContents, WindowContents
from tamias.operators.windows.combining import (
    AllInSlices,
    ChoiceInSlices,
    ExtremeInSlices,
    SliceContents,
    SumInSlices,
    ValueInSlices,
)
from tamias.operators.windows.contents import contents_for
from tamias.types.basic_types import IntegerTypeInfo
from tamias.types.composite_types import RowTypeInfo, TupleTypeInfo
from tamias.types.type_information import TypeInformation


def slice_contents_for(spec: WindowContents, input_type: TypeInformation | None) -> SliceContents | None:
    """How a spec's contents are kept in slices; None where only adding record after record gives the right result."""
    match spec:
        case ListContents():
            return AllInSlices(contents_for(spec, input_type))
        case ReduceContents(function) if type(function) in (MinFunction, MaxFunction):
            return ExtremeInSlices(contents_for(spec, input_type), function)
        case ReduceContents(function) if type(function) in (MinByFunction, MaxByFunction):
            return ChoiceInSlices(contents_for(spec, input_type), function)
        case ReduceContents(function) if type(function) is SumFunction:
            # Not to be left to the records: the first that is no whole number would end the use of slices.
            whole = isinstance(_declared(input_type, function.field), IntegerTypeInfo)
            return SumInSlices(contents_for(spec, input_type), function) if whole else None
        case ReduceContents(ReduceFunction(combines_exactly=True)) | AggregateContents(
            AggregateFunction(combines_exactly=True)
        ):
            return ValueInSlices(contents_for(spec, input_type))
        case ReduceContents() | AggregateContents() | FoldContents():
            return None


def _declared(input_type: TypeInformation | None, field: Field) -> TypeInformation | None:
    """The declared type of a field of the records."""
    if isinstance(input_type, RowTypeInfo) and isinstance(field, str):
        names = input_type.get_field_names()
        return input_type.get_field_types()[names.index(field)] if field in names else None
    if isinstance(input_type, (RowTypeInfo, TupleTypeInfo)):
        types = input_type.get_field_types()
        return types[field] if isinstance(field, int) and -len(types) <= field < len(types) else None
    return input_type if field == 0 else None
