"""`LakeSource`: what the sources of lakes share, which read the files of one version of a table."""

from __future__ import annotations

from collections.abc import Sequence

from ekorn.functions.source_contract import Boundedness, Source, Split
from ekorn.types.composite_types import RowTypeInfo

__all__ = ["LakeSource"]


class LakeSource(Source):
    """Reads the files of a version of a table once. Files are read at the same time."""

    def __init__(self, type_info: RowTypeInfo, files: Sequence[str]) -> None:
        """Take the columns and the files of the version."""
        self._type_info = type_info
        self._files = files

    @property
    def boundedness(self) -> Boundedness:
        """Return BOUNDED."""
        return Boundedness.BOUNDED

    def get_produced_type(self) -> RowTypeInfo:
        """Return rows with the names and types of the columns."""
        return self._type_info

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        """Return one split for each file of the version."""
        return [Split(path, path) for path in self._files]
