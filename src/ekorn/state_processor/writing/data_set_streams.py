"""Data sets as streams: for jobs that fill the state of a savepoint from them."""

from __future__ import annotations

import pickle
from typing import Any

from ekorn.batch.program.data_set import DataSet
from ekorn.batch.program.runner import runs_on_spark
from ekorn.program.streams.data_stream import DataStream
from ekorn.types.by_value import dumps
from ekorn.types.data_types import DataTypes
from ekorn.types.row import Row

__all__ = ["stream_of"]

_PICKLED = DataTypes.ROW([DataTypes.FIELD("record", DataTypes.BYTES())])


def stream_of(data_set: DataSet) -> DataStream:
    """Compute a data set, and return the bounded stream of its records.

    The stream belongs to the environment of streams that goes with the data set's. On Spark the records stay there
    until the job that reads the stream is submitted, and then pass through files, as those of a DataFrame do: none
    passes the driver.
    """
    env = data_set.get_execution_environment().stream_environment()
    if not runs_on_spark():
        return env.from_collection(data_set.collect(), data_set.get_type())
    frame = data_set.map(_as_row).to_data_frame(_PICKLED)
    return env.from_data_frame(frame, source_name=data_set.get_name()).map(_record, data_set.get_type())


def _as_row(record: Any) -> Row:
    return Row(dumps(record))


def _record(row: Row) -> Any:
    return pickle.loads(row[0])
