"""A format whose package is not installed says in one sentence what to install."""

import os
import subprocess
import sys

import pytest

from tests.imports import SOURCE

PARQUET = """
from ekorn.datastream.formats.parquet import ParquetBulkWriters
from ekorn.table import DataTypes
ParquetBulkWriters.for_row_type(DataTypes.ROW([DataTypes.FIELD("n", DataTypes.INT())])).create(io.BytesIO())
"""
ORC = PARQUET.replace("parquet", "orc").replace("Parquet", "Orc")
AVRO = """
from ekorn.datastream.formats.avro import AvroRowSerializationSchema
AvroRowSerializationSchema(avro_schema_string='"int"')
"""
ZSTD = """
from ekorn.datastream.connectors.file_system import StreamFormat
open(sys.argv[1] + "/x.zst", "wb").write(b"x")
StreamFormat.text_line_format().create_reader(sys.argv[1] + "/x.zst", 0, None, None).read(1)
"""


@pytest.mark.parametrize(
    ("package", "program", "says"),
    [
        ("pyarrow", PARQUET, "Parquet needs pyarrow, in every process: pip install 'ekorn[parquet]'"),
        ("pyarrow", ORC, "ORC needs pyarrow, in every process: pip install 'ekorn[parquet]'"),
        ("fastavro", AVRO, "need fastavro, in every process: pip install 'ekorn[avro]'"),
        ("backports.zstd", ZSTD, "compressed with zstd needs an extra: pip install 'ekorn[zstd]'"),
    ],
    ids=["parquet", "orc", "avro", "zstd"],
)
def test_a_missing_package_is_named_with_its_extra(tmp_path, package, program, says):
    begin = f"import io, sys\nsys.modules[{package!r}] = sys.modules['compression'] = None\n"
    done = subprocess.run(
        [sys.executable, "-c", begin + program, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(SOURCE.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ekorn.errors.") and "ConfigurationError: " in last
    assert says in last
