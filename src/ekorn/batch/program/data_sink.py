"""`DataSink`: where the records of a data set are written."""

from __future__ import annotations

from typing import Self

from ekorn.batch.program.data_set_settings import DataSetSettings

__all__ = ["DataSink"]


class DataSink:
    """An output that the next `execute` writes. Its name and parallelism may be set until then."""

    def __init__(self, settings: DataSetSettings) -> None:
        """Take the settings of the operator that writes; methods of `DataSet` make sinks."""
        self._settings = settings

    def name(self, name: str) -> Self:
        """Set the name that errors and plans show."""
        self._settings.name(name)
        return self

    def get_name(self) -> str:
        """Return the sink's name."""
        return self._settings.get_name()

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the number of subtasks; -1 stands for the environment's parallelism. A file sink of one writes a file."""
        self._settings.set_parallelism(parallelism)
        return self

    def get_parallelism(self) -> int:
        """Return the number of subtasks that was set; -1 if the environment's parallelism applies."""
        return self._settings.get_parallelism()

    def __repr__(self) -> str:
        return f"DataSink({self.get_name()!r})"
