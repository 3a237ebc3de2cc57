"""The methods of a data set that run what it needs, and return or print the result."""

from __future__ import annotations

from typing import Any

from ekorn.batch.plan.data_set_specs import CollectAllSpec, CountSpec, FrameSpec
from ekorn.batch.planner.explained_plan import plan_as_text
from ekorn.batch.program.data_set_core import DataSetCore
from ekorn.types.record_text import record_text

__all__ = ["DataSetResults"]


class DataSetResults(DataSetCore):
    """The part of `DataSet` that runs a program now."""

    def collect(self) -> list[Any]:
        """Run what this data set needs, and return its records."""
        return self.environment.run_now(self.next("collect()", CollectAllSpec(), self._known_type))

    def count(self) -> int:
        """Run what this data set needs, and return the number of its records."""
        return sum(self.environment.run_now(self.next("count()", CountSpec())))

    def explain(self) -> str:
        """Return the operators that this data set needs, one on each line, with how their records get there."""
        return plan_as_text(self.environment.plan([self]))

    def to_data_frame(self, schema: Any = None) -> Any:
        """Run what this data set needs; return its records as a DataFrame of Spark.

        Spark keeps the records as long as the DataFrame is used. They do not pass the driver.

        Args:
            schema: The columns: a `StructType`, text such as ``id long, word string``, ``DataTypes.ROW(...)`` or
                ``Types.ROW_NAMED(...)``. By default the columns of the declared type. Records are `Row`s, tuples or
                dicts.
        """
        from ekorn.engine.spark.data_frames.result_frames import row_type_for

        if isinstance(schema, str):
            self.environment.start_spark()  # which reads the text
        row_type = row_type_for(schema, self._known_type, "to_data_frame()")
        (frame,) = self.environment.run_now(self.next("to_data_frame()", FrameSpec(row_type)))
        return frame

    def print(self) -> None:
        """Run what this data set needs, and print its records in the driver, one on each line."""
        for record in self.collect():
            print(record_text(self._known_type if self._declares_type else None, record))
