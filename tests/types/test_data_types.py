"""Data types by PyFlink's names, and the types of the records that they describe."""

import pickle

import pytest

from ekorn.common.typeinfo import Types
from ekorn.table import DataTypes
from ekorn.table.types import NumericType, RowType
from ekorn.types.data_type_info import checked_row_type, row_type_info, type_info_of

ROW = DataTypes.ROW(
    [DataTypes.FIELD("id", DataTypes.INT(False)), DataTypes.FIELD("tags", DataTypes.ARRAY(DataTypes.STRING()))]
)


def test_equal_types_have_equal_hashes_and_survive_pickling():
    same = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.INT().not_null())]).add(
        "tags", DataTypes.ARRAY(DataTypes.STRING())
    )
    assert same == ROW
    assert hash(same) == hash(ROW)
    assert pickle.loads(pickle.dumps(ROW)) == ROW


def test_nullability_and_arguments_take_part_in_equality():
    assert DataTypes.INT() != DataTypes.INT().not_null()
    assert DataTypes.INT().not_null().nullable() == DataTypes.INT()
    assert DataTypes.DECIMAL(4, 2) != DataTypes.DECIMAL(4, 1)
    assert DataTypes.INT() != DataTypes.BIGINT()


def test_a_row_type_is_read_by_position_and_by_name():
    assert (len(ROW), ROW[0].name, ROW["tags"].data_type) == (2, "id", DataTypes.ARRAY(DataTypes.STRING()))
    assert ROW.field_names() == [field.name for field in ROW] == ["id", "tags"]
    with pytest.raises(KeyError, match="its fields are"):
        ROW["absent"]


def test_numbers_are_numeric_types():
    numbers = [DataTypes.TINYINT(), DataTypes.BIGINT(), DataTypes.FLOAT(), DataTypes.DECIMAL(38, 18)]
    assert all(isinstance(each, NumericType) for each in numbers)
    assert not isinstance(DataTypes.STRING(), NumericType)


@pytest.mark.parametrize(
    ("data_type", "type_info"),
    [
        (DataTypes.STRING(), Types.STRING()),
        (DataTypes.CHAR(3), Types.STRING()),
        (DataTypes.BYTES(), Types.PRIMITIVE_ARRAY(Types.BYTE())),
        (DataTypes.BOOLEAN(), Types.BOOLEAN()),
        (DataTypes.TINYINT(), Types.BYTE()),
        (DataTypes.SMALLINT(), Types.SHORT()),
        (DataTypes.INT(), Types.INT()),
        (DataTypes.BIGINT(), Types.LONG()),
        (DataTypes.FLOAT(), Types.FLOAT()),
        (DataTypes.DOUBLE(), Types.DOUBLE()),
        (DataTypes.DECIMAL(4, 2), Types.BIG_DEC()),
        (DataTypes.DATE(), Types.SQL_DATE()),
        (DataTypes.TIME(), Types.SQL_TIME()),
        (DataTypes.TIMESTAMP(3), Types.SQL_TIMESTAMP()),
        (DataTypes.TIMESTAMP(6), Types.PICKLED_BYTE_ARRAY()),
        (DataTypes.TIMESTAMP_LTZ(3), Types.INSTANT()),
        (DataTypes.MAP(DataTypes.STRING(), DataTypes.INT()), Types.MAP(Types.STRING(), Types.INT())),
        (DataTypes.MULTISET(DataTypes.STRING()), Types.MAP(Types.STRING(), Types.INT())),
        (DataTypes.INTERVAL(DataTypes.YEAR(), DataTypes.MONTH()), Types.INT()),
    ],
)
def test_the_type_of_values(data_type, type_info):
    assert type_info_of(data_type) == type_info


def test_the_type_of_rows_has_the_names_of_the_fields():
    found = row_type_info(ROW)
    assert found == Types.ROW_NAMED(["id", "tags"], [Types.INT(), Types.OBJECT_ARRAY(Types.STRING())])
    assert found.get_field_names() == ["id", "tags"]


@pytest.mark.parametrize(
    "declare",
    [
        lambda: DataTypes.DECIMAL(39, 0),
        lambda: DataTypes.DECIMAL(3, 4),
        lambda: DataTypes.TIMESTAMP(10),
        lambda: DataTypes.VARCHAR(0),
        lambda: DataTypes.INTERVAL(DataTypes.SECOND(), DataTypes.DAY()),
        lambda: DataTypes.INTERVAL(DataTypes.YEAR(), DataTypes.SECOND()),
        lambda: RowType(ROW.fields).add("id", DataTypes.INT()),
    ],
)
def test_impossible_types_are_refused(declare):
    with pytest.raises(ValueError, match=r"from|twice"):
        declare()


def test_what_is_no_data_type_is_refused_with_an_example():
    with pytest.raises(TypeError, match=r"DataTypes\.INT\(\)"):
        DataTypes.ARRAY(Types.INT())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"DataTypes\.FIELD"):
        DataTypes.ROW([DataTypes.INT()])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"for_row_type\(\) takes a row type such as"):
        checked_row_type(Types.ROW([Types.INT()]), "for_row_type()")
