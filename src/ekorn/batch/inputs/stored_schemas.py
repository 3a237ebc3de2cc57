"""The schemas that files hold themselves."""

from __future__ import annotations

from ekorn.connectors.data_frames.arrow_row_types import row_type_of_arrow
from ekorn.connectors.formats.arrow_columns import load_arrow
from ekorn.connectors.formats.avro_container import Container
from ekorn.errors import ConfigurationError
from ekorn.storage.input_files import list_files, open_input
from ekorn.storage.locations import shown
from ekorn.types.avro_schema import AvroSchema
from ekorn.types.data_types import RowType

__all__ = ["row_type_of_parquet", "schema_of_avro"]


def row_type_of_parquet(address: str) -> RowType:
    """Return the columns of a Parquet file, or of the first one in a directory."""
    load_arrow("Parquet")
    import pyarrow.parquet

    first = _first_file(address)
    with open_input(first) as stream:
        try:
            return row_type_of_arrow(pyarrow.parquet.read_schema(stream))
        except (pyarrow.ArrowInvalid, OSError) as error:
            raise ConfigurationError(f"cannot read {shown(first)!r} as Parquet: {error}") from None


def schema_of_avro(address: str) -> AvroSchema:
    """Return the schema of an Avro file, or of the first one in a directory."""
    return AvroSchema.parse_string(Container(_first_file(address)).document)


def _first_file(address: str) -> str:
    try:
        files = list_files(address, skip=lambda name: name.startswith((".", "_")))
    except FileNotFoundError:
        raise ConfigurationError(f"cannot read {shown(address)!r}: there is no such file or directory") from None
    if not files:
        raise ConfigurationError(f"{shown(address)!r} has no files, so its columns are not known; give the type")
    return files[0].address
