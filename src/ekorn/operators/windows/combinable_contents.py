"""Decides which contents of windows can be kept in slices, and how."""

from __future__ import annotations

from ekorn.functions.record_fields import Field
from ekorn.functions.record_functions import AggregateFunction, ReduceFunction
from ekorn.functions.rolling_aggregates import MaxByFunction, MaxFunction, MinByFunction, MinFunction, SumFunction
from ekorn.graph.specs import AggregateContents, FoldContents, ListContents, ReduceContents, WindowContents
from ekorn.operators.windows.contents import contents_for
from ekorn.operators.windows.slice_contents import SliceContents
from ekorn.operators.windows.sliced_records import SlicedRecords
from ekorn.operators.windows.sliced_values import SlicedValues
from ekorn.operators.windows.value_combiners import (
    ChoiceCombiner,
    ExtremeCombiner,
    PromisedCombiner,
    SumCombiner,
    ValueCombiner,
)
from ekorn.types.basic_types import IntegerTypeInfo
from ekorn.types.composite_types import RowTypeInfo, TupleTypeInfo
from ekorn.types.type_information import TypeInformation


def slice_contents_for(spec: WindowContents, input_type: TypeInformation | None) -> SliceContents | None:
    """Return how a spec's contents are kept in slices, or None if only adding record after record is exact."""
    contents = contents_for(spec, input_type)
    if isinstance(spec, ListContents):
        return SlicedRecords(contents)
    combiner = _combiner_for(spec, input_type)
    return SlicedValues(contents, combiner) if combiner is not None else None


def _combiner_for(
    spec: ReduceContents | AggregateContents | FoldContents, input_type: TypeInformation | None
) -> ValueCombiner | None:
    match spec:
        case ReduceContents(function) if type(function) in (MinFunction, MaxFunction):
            return ExtremeCombiner(function)
        case ReduceContents(function) if type(function) in (MinByFunction, MaxByFunction):
            return ChoiceCombiner(function)
        case ReduceContents(function) if type(function) is SumFunction:
            # The declared type decides, not the records: otherwise the first record that is not an integer would end
            # the use of slices.
            is_integer = isinstance(_declared_type(input_type, function.field), IntegerTypeInfo)
            return SumCombiner(function) if is_integer else None
        case ReduceContents(ReduceFunction(combines_exactly=True)) | AggregateContents(
            AggregateFunction(combines_exactly=True)
        ):
            return PromisedCombiner(contents_for(spec, input_type))
        case ReduceContents() | AggregateContents() | FoldContents():
            return None


def _declared_type(input_type: TypeInformation | None, field: Field) -> TypeInformation | None:
    """Return the declared type of a field of the records, or None if there is none."""
    if isinstance(input_type, RowTypeInfo) and isinstance(field, str):
        names = input_type.get_field_names()
        return input_type.get_field_types()[names.index(field)] if field in names else None
    if isinstance(input_type, (RowTypeInfo, TupleTypeInfo)):
        types = input_type.get_field_types()
        return types[field] if isinstance(field, int) and -len(types) <= field < len(types) else None
    return input_type if field == 0 else None
