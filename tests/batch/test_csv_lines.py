"""Lines of CSV as records, and files as lines."""

import gzip
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.batch.inputs.lines import CsvColumn, CsvLines, LineFormat
from ekorn.batch.inputs.source_inputs import FileInput
from ekorn.connectors.files.stream_formats import StreamFormat
from ekorn.dataset import ExecutionEnvironment
from ekorn.errors import ConfigurationError, InvalidProgramError, MalformedRecordError


def texts(count, **how):
    return CsvLines([CsvColumn(index, str) for index in range(count)], list, **how)


def read(source, parallelism=1, parameters=None):
    return [list(split.read()) for split in source.splits(parallelism, parameters or {})]


@pytest.mark.parametrize("separator", [",", "||"])
@given(fields=st.lists(st.text(st.sampled_from('ab",| ')), min_size=1, max_size=4))
def test_quoted_fields_are_read_back(separator, fields):
    line = separator.join('"' + field.replace('"', '""') + '"' for field in fields)
    assert texts(len(fields), separator=separator, quote='"')(line) == fields


@given(fields=st.lists(st.text(st.sampled_from("ab ")), min_size=1, max_size=4))
def test_plain_fields_are_read_back(fields):
    assert texts(len(fields), separator="||")("||".join(fields)) == fields


def test_more_columns_are_passed_over_and_fewer_are_refused():
    assert texts(2)("a,b,c") == ["a", "b"]
    with pytest.raises(ValueError, match="expected 3 columns, found 2"):
        texts(3)("a,b")


@pytest.mark.parametrize("line", ['"a', '"a"b||c', '"a||b'])
def test_a_quote_that_is_not_closed_is_refused(line):
    with pytest.raises(ValueError, match=r"quote|expected"):
        texts(1, separator="||", quote='"')(line)


def test_a_wrong_value_names_its_column():
    lines = CsvLines([CsvColumn(0, str), CsvColumn(2, int)], tuple)
    assert lines("a,x,7") == ("a", 7)
    with pytest.raises(ValueError, match="column 2: invalid literal"):
        lines("a,7,x")


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_the_ranges_of_a_file_hold_each_line_once(tmp_path, parallelism):
    file = tmp_path / "lines"
    lines = [f"{number:07d}" * (number % 40) for number in range(40_000)]
    file.write_text("\n".join(lines))
    parts = read(FileInput(StreamFormat.text_line_format(), [str(file)]), parallelism)
    assert len(parts) == min(parallelism, 5)
    assert [line for part in parts for line in part] == lines


def test_directories_and_hidden_and_packed_files(tmp_path):
    (tmp_path / "a").write_text("1\n2\n")
    (tmp_path / "_b").write_text("hidden\n")
    (tmp_path / "c.gz").write_bytes(gzip.compress(b"3\n"))
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "e").write_text("4")
    source = FileInput(StreamFormat.text_line_format(), [str(tmp_path)])
    assert read(source) == [["1", "2"], ["3"]]
    assert read(source, parameters={"recursive.file.enumeration": "true"}) == [["1", "2"], ["3"], ["4"]]
    with pytest.raises(ConfigurationError, match="no such file"):
        read(FileInput(StreamFormat.text_line_format(), [str(tmp_path / "nothing")]))


def test_lines_with_a_delimiter_of_their_own(tmp_path):
    file = tmp_path / "lines"
    file.write_text("1;22;;3;")
    assert read(FileInput(LineFormat(str, delimiter=";"), [str(file)])) == [["1", "22", "", "3"]]
    file.write_bytes("ä;".encode() * 200_000)  # a piece of the file may end inside a character
    assert read(FileInput(LineFormat(str, delimiter=";"), [str(file)])) == [["ä"] * 200_000]


def test_a_malformed_line_names_file_line_and_reason_or_is_passed_over(tmp_path):
    file = tmp_path / "numbers"
    file.write_text("#1\n2\nthree\n4\n")
    numbers = LineFormat(int, comment="#")
    with pytest.raises(MalformedRecordError, match=r"line 3 of '.*numbers'.*invalid literal"):
        read(FileInput(numbers, [str(file)]))
    assert read(FileInput(numbers, [str(file)], skips_malformed=True)) == [[2, 4]]


@dataclass
class Person:
    name: str
    age: int


def records(data_set):
    (part,) = read(data_set.spec.input)
    return part


def test_the_settings_of_a_csv_reader(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text('name;city;age\n// nobody\nAnn;"Bonn;Rhine";31\nBob;Rome;x\nCem;Ankara;40\n')
    env = ExecutionEnvironment()

    def people():
        reader = env.read_csv_file(file).field_delimiter(";").parse_quoted_strings().ignore_first_line()
        return reader.ignore_comments("//").ignore_invalid_lines()

    assert records(people().types(str, str, int)) == [("Ann", "Bonn;Rhine", 31), ("Cem", "Ankara", 40)]
    assert records(people().include_fields("101").types(str, int)) == [("Ann", 31), ("Cem", 40)]
    assert records(people().include_fields(True, False, True).pojo_type(Person, "name", "age")) == [
        Person("Ann", 31),
        Person("Cem", 40),
    ]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda reader: reader.types(), "needs the type of each column"),
        (lambda reader: reader.include_fields("101").types(str), "got 1 types, but include_fields.. chose 2"),
        (lambda reader: reader.include_fields("000"), "at least one column"),
        (lambda reader: reader.pojo_type(Person), "needs the names"),
        (lambda reader: reader.pojo_type(Person, "height"), "no annotation for 'height'"),
        (lambda reader: reader.pojo_type(Person, "name", field_types=[str, int]), "1 fields and 2 types"),
    ],
)
def test_a_csv_reader_refuses_what_does_not_fit(tmp_path, wrong, message):
    with pytest.raises(InvalidProgramError, match=message):
        wrong(ExecutionEnvironment().read_csv_file(tmp_path))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda reader: reader.types(list),
        lambda reader: reader.include_fields("12"),
        lambda reader: reader.include_fields(1),
        lambda reader: reader.field_delimiter(""),
        lambda reader: reader.parse_quoted_strings("''"),
        lambda reader: reader.pojo_type("Person", "name"),
    ],
)
def test_a_csv_reader_refuses_arguments_of_a_wrong_kind(tmp_path, wrong):
    with pytest.raises((TypeError, ValueError)):
        wrong(ExecutionEnvironment().read_csv_file(tmp_path))
