"""Files that a writer of a bulk format writes, of rows and of columns."""

import io

from hypothesis import strategies as st

from ekorn.columns.row_columns import RowColumns
from ekorn.common import Row
from ekorn.table import DataTypes
from tests.connectors.formats.values_of_types import VALUES, WITH_MAP

NAMES = WITH_MAP.field_names()
ROWS = st.lists(st.builds(Row, **{name: st.none() | VALUES[name] for name in NAMES}), max_size=12)
CSV_FIELDS = [field for field in WITH_MAP if field.name not in ("map", "inner")]
CSV_TYPE = DataTypes.ROW([*CSV_FIELDS, DataTypes.FIELD("name", DataTypes.STRING())])
CSV_ROWS = st.lists(
    st.builds(Row, **{f.name: st.none() | VALUES[f.name] for f in CSV_FIELDS}, name=st.none() | st.text(max_size=30)),
    max_size=8,
)


def written(factory, rows, row_type=None, cuts=()):
    """Return the bytes of a file: of rows, or of batches of a row type that are cut at some positions."""
    stream = io.BytesIO()
    stream.close = lambda: None  # type: ignore[method-assign]  # pyarrow closes what it writes to
    if row_type is not None:
        factory = factory.for_columns(row_type)
        assert factory is not None, "the format takes these columns"
        batch = RowColumns(row_type).batch(rows)
        ends = [*sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    writer = factory.create(stream)
    if row_type is None:
        for row in rows:
            writer.add_element(row)
    else:
        for start, end in zip([0, *ends], ends, strict=False):
            writer.add_columns(batch.slice(start, end - start))
    writer.finish()
    return stream.getvalue()
