from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.common import ByteArraySchema, Encoder, ExecutionConfig, ParameterTool, Row, SimpleStringSchema, Types
from ekorn.common.serialization import RowFieldExtractorSchema
from ekorn.errors import ConfigurationError, RecordTypeError
from ekorn.types.serializer import VoidNamespaceSerializer


def test_arguments_are_keys_with_values_or_flags():
    tool = ParameterTool.from_args(["--input", "a b", "-n", "-3", "--verbose", "--x", "1.5e-3", "--last"])
    assert tool.to_map() == {
        "input": "a b",
        "n": "-3",
        "verbose": "__NO_VALUE_KEY",
        "x": "1.5e-3",
        "last": "__NO_VALUE_KEY",
    }
    assert tool.get_int("n") == tool.get_long("n") == -3
    assert tool.get_float("x") == tool.get_double("x") == 0.0015
    assert tool.has("verbose")
    assert tool.get_boolean("verbose") is True
    assert not tool.has("quiet")
    assert tool.get_number_of_parameters() == 5
    assert tool.get_configuration().get_integer("n", 0) == -3


@pytest.mark.parametrize("args", [["value"], ["--a", "1", "2"], ["--"], ["-"]])
def test_arguments_that_name_no_key_are_refused(args):
    with pytest.raises(ConfigurationError):
        ParameterTool.from_args(args)


def test_a_missing_parameter_is_none_a_default_or_an_error():
    tool = ParameterTool.from_map({"a": "x"})
    assert tool.get("b") is None
    assert tool.get("b", "d") == "d"
    assert tool.get_int("b", 7) == 7
    assert tool.get_boolean("b", False) is False
    with pytest.raises(ConfigurationError, match="'b' is required"):
        tool.get_required("b")
    with pytest.raises(ConfigurationError, match="'b' is required"):
        tool.get_int("b")
    with pytest.raises(ConfigurationError, match="'x' of the parameter 'a'"):
        tool.get_int("a")


def test_the_argument_of_merge_wins():
    one, other = ParameterTool.from_map({"a": "1", "b": "1"}), ParameterTool.from_map({"b": "2"})
    assert one.merge_with(other).to_map() == {"a": "1", "b": "2"}
    assert one == ParameterTool.from_map({"b": "1", "a": "1"})


def test_parameters_come_from_a_properties_file_or_the_environment(tmp_path, monkeypatch):
    path = tmp_path / "job.properties"
    path.write_text("# comment\n! comment\na=1\nb: two words\nc = x=y\nlong = one \\\n two\nempty=\n", encoding="utf-8")
    assert ParameterTool.from_properties_file(path).to_map() == {
        "a": "1",
        "b": "two words",
        "c": "x=y",
        "long": "one two",
        "empty": "",
    }
    with pytest.raises(ConfigurationError, match="nope"):
        ParameterTool.from_properties_file(tmp_path / "nope")
    monkeypatch.setenv("EKORN_TEST", "5")
    assert ParameterTool.from_system_properties().get_int("EKORN_TEST") == 5


def test_properties_are_read_as_java_reads_them(tmp_path):
    lines = [
        r"plain value with blanks  ",
        "\t indented\t:\tvalue",
        r"key\ with\:signs\= = \u00e9\t\\end",
        "twice=1",
        "twice=2",
        "continued = a, \\",
        "   # b, \\",
        "   c",
        r"path=C:\\folder\\",
        "nothing",
        r"\#no\ comment=1",
        "last = \\",
    ]
    path = tmp_path / "job.properties"
    path.write_text("\r\n".join(lines), encoding="utf-8")
    assert ParameterTool.from_properties_file(str(path)).to_map() == {
        "plain": "value with blanks  ",
        "indented": "value",
        "key with:signs=": "é\t\\end",
        "twice": "2",
        "continued": "a, # b, c",
        "path": "C:\\folder\\",
        "nothing": "",
        "#no comment": "1",
        "last": "",
    }


@pytest.mark.parametrize("number", ["-1", "-1.5", "-.5", "-2.", "-1e-7", "-0x1F", "-7L"])
def test_a_negative_number_is_a_value(number):
    assert ParameterTool.from_args(["-n", number, "--flag"]).to_map() == {"n": number, "flag": "__NO_VALUE_KEY"}


@pytest.mark.parametrize("word", ["-x", "--x", "-1x", "-", "-e5"])
def test_anything_else_with_a_dash_is_the_next_key(word):
    arguments = ["--n", word, "1"]
    if word == "-":
        with pytest.raises(ConfigurationError, match="does not name a key"):
            ParameterTool.from_args(arguments)
    else:
        assert ParameterTool.from_args(arguments).to_map() == {"n": "__NO_VALUE_KEY", word.lstrip("-"): "1"}


def test_small_numbers_have_bounds():
    tool = ParameterTool.from_map({"a": "127", "b": "128", "c": "-32768", "d": "32768"})
    assert (tool.get_byte("a"), tool.get_short("c"), tool.get_byte("x", 3)) == (127, -32768, 3)
    with pytest.raises(ConfigurationError, match="'b' is from -128 to 127, not 128"):
        tool.get_byte("b")
    with pytest.raises(ConfigurationError, match="'d' is from -32768 to 32767"):
        tool.get_short("d")


def test_parameters_that_nobody_asked_for_are_known():
    tool = ParameterTool.from_args(["--input", "a", "--prallelism", "3", "--verbose", "--limit", "4"])
    tool.get_required("input")
    tool.get_int("limit")
    tool.get_int("parallelism", 1)
    assert tool.has("verbose")
    assert tool.get_unrequested_parameters() == {"prallelism"}


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_global_parameters_come_out_as_they_went_in(parameters):
    config = ExecutionConfig()
    config.set_global_job_parameters(ParameterTool.from_map(parameters))
    assert config.get_global_job_parameters() == parameters


def test_text_goes_to_bytes_and_back():
    schema = SimpleStringSchema()
    assert schema.deserialize(schema.serialize("é")) == "é"
    assert schema.serialize(("a", 1)) == b"('a', 1)"
    assert schema.with_type(Types.TUPLE([Types.STRING(), Types.INT()])).serialize(("a", 1)) == b"(a,1)"
    assert schema.get_produced_type() == Types.STRING()
    assert SimpleStringSchema("latin-1").serialize("é") == b"\xe9"
    assert SimpleStringSchema().deserialize(b"a\xff") == "a\ufffd"
    assert schema.is_end_of_stream("a") is False
    with pytest.raises(ConfigurationError, match="charset"):
        SimpleStringSchema("klingon")


def test_an_encoder_writes_a_line_per_record():
    encoder = Encoder.simple_string_encoder()
    assert encoder.encode("a") == b"a\n"
    assert encoder.encode(("a", 1)) == b"('a', 1)\n"
    row_type = Types.ROW([Types.INT(), Types.BOOLEAN()])
    assert encoder.with_type(row_type).encode(Row(f0=1, f1=True)) == b"+I[1, true]\n"
    with pytest.raises(ConfigurationError, match="charset"):
        Encoder.simple_string_encoder("klingon")


def test_bytes_pass_as_they_are():
    schema = ByteArraySchema()
    assert schema.serialize(bytearray(b"a")) == schema.deserialize(b"a") == b"a"  # type: ignore[arg-type]
    assert schema.get_produced_type() == Types.PRIMITIVE_ARRAY(Types.BYTE())


def test_one_field_of_a_row_can_be_written_alone():
    schema = RowFieldExtractorSchema(1)
    assert schema.serialize(Row(b"k", b"v")) == b"v"
    assert schema.serialize(Row(b"k", None)) is None
    assert schema == RowFieldExtractorSchema(1)
    with pytest.raises(RecordTypeError, match="field 1 is 'v'"):
        schema.serialize(Row(b"k", "v"))
    with pytest.raises(RecordTypeError, match="no field 1"):
        schema.serialize(Row(b"k"))
    with pytest.raises(ValueError, match="Field index must be non-negative, got -1"):
        RowFieldExtractorSchema(-1)


def test_the_namespace_of_no_window_takes_no_bytes():
    stream = BytesIO()
    VoidNamespaceSerializer().serialize(b"", stream)
    assert stream.getvalue() == b""
    assert VoidNamespaceSerializer().deserialize(stream) == b""
