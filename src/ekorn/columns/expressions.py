"""Evaluates expressions of PyArrow on a batch."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["evaluated"]


def evaluated(data: pa.RecordBatch, expressions: list[pc.Expression]) -> list[pa.Array]:
    """Return the values of expressions for each row."""
    if not expressions:
        return []
    from pyarrow import acero

    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(pa.Table.from_batches([data])))
    names = [f"c{number}" for number in range(len(expressions))]
    project = acero.Declaration("project", acero.ProjectNodeOptions(expressions, names), [source])
    table = project.to_table(use_threads=False)
    return [table.column(name).combine_chunks() for name in names]
