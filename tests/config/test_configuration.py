import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.common import ConfigOptions, Configuration, ExecutionConfig, RuntimeExecutionMode, load_configuration
from ekorn.config import options
from ekorn.config.option import ConfigOption
from ekorn.config.options.listing import all_options
from ekorn.config.value_text import parse_duration_ms, parse_list, parse_map, parse_memory_bytes, value_text
from ekorn.config.yaml_text import parse_configuration
from ekorn.errors import ConfigurationError
from tests.config.options_page import PAGE, page


def sample():
    return (
        Configuration()
        .set_string("s", "x")
        .set_integer("i", 5)
        .set_boolean("b", True)
        .set_float("f", 1.5)
        .set_bytearray("by", bytearray(b"ab"))
    )


def test_to_dict_gives_text_and_add_all_to_dict_keeps_types():
    configuration = sample()
    assert configuration.to_dict() == {"s": "x", "i": "5", "b": "true", "f": "1.5", "by": "!!binary |-\n  YWI="}
    target = {}
    configuration.add_all_to_dict(target)
    assert target == {"s": "x", "i": 5, "b": True, "f": 1.5, "by": b"ab"}


def test_values_are_read_as_another_type_where_their_text_allows():
    configuration = sample().set_string("n", "12").set_string("t", "TRUE")
    assert configuration.get_string("i", "q") == "5"
    assert configuration.get_string("b", "q") == "true"
    assert configuration.get_float("i", 0.5) == 5.0
    assert configuration.get_integer("n", 0) == 12
    assert configuration.get_boolean("t", False) is True
    assert configuration.get_bytearray("by", None) == bytearray(b"ab")
    assert configuration.get_string("nope", "dd") == "dd"
    assert configuration.get_string("nope", None) is None


@pytest.mark.parametrize(
    "read",
    [
        lambda c: c.get_integer("s", 1),
        lambda c: c.get_integer("f", 1),
        lambda c: c.get_boolean("s", False),
        lambda c: c.get_float("s", 0.1),
        lambda c: c.get_bytearray("s", None),
    ],
)
def test_a_value_that_cannot_be_read_names_its_key(read):
    with pytest.raises(ConfigurationError, match=r"'(x|1\.5)|1\.5 of"):
        read(sample())


def test_copies_are_independent_and_equal():
    configuration = sample()
    copy = Configuration(configuration)
    assert copy == configuration
    assert hash(copy) == hash(configuration)
    assert configuration.remove_config("s") is True
    assert configuration.remove_config("s") is False
    assert copy.contains_key("s")
    assert copy.key_set() == {"s", "i", "b", "f", "by"}
    assert copy != configuration


def test_all_values_can_be_added_behind_a_prefix():
    target = Configuration().add_all(Configuration().set_integer("i", 1), "p.")
    assert target.to_dict() == {"p.i": "1"}
    assert Configuration.from_dict({"a": "1"}).to_dict() == {"a": "1"}
    assert str(target) == "{p.i=1}"


def test_lists_are_read_in_every_form_flink_reads():
    assert Configuration.parse_list_value("a;b;c") == ["a", "b", "c"]
    assert Configuration.parse_list_value("[a, b]") == ["a", "b"]
    assert Configuration.parse_list_value('["x","y"]') == ["x", "y"]
    assert Configuration.parse_list_value("- a\n- b") == ["a", "b"]
    assert Configuration.parse_list_value("a,b") == ["a,b"]
    assert Configuration.parse_list_value("") == Configuration.parse_list_value(None) == []
    with pytest.raises(ConfigurationError, match="not closed"):
        Configuration.parse_list_value("'a;b")


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("10 s", 10_000),
        ("5 min", 300_000),
        ("500 ms", 500),
        ("1 h", 3_600_000),
        ("2 d", 172_800_000),
        ("10s", 10_000),
        ("PT10S", 10_000),
        ("PT1H30M", 5_400_000),
        ("P1DT0.5S", 86_400_500),
        ("200", 200),
        ("1500 us", 1),
        ("3 Minutes", 180_000),
    ],
)
def test_durations(text, millis):
    assert parse_duration_ms(text) == millis


@pytest.mark.parametrize("text", ["", "s", "10 parsecs", "P", "PT", "-5 s", "1.5 s"])
def test_durations_that_are_none(text):
    with pytest.raises(ValueError, match="duration"):
        parse_duration_ms(text)


def test_memory_sizes():
    assert [parse_memory_bytes(text) for text in ("64kb", "32 mb", "1g", "12", "1728m", "5 bytes")] == [
        65536,
        33554432,
        1073741824,
        12,
        1811939328,
        5,
    ]
    with pytest.raises(ValueError, match="size"):
        parse_memory_bytes("12 x")


@given(st.lists(st.text("ab;,'\" []{}-:")))
def test_a_list_written_is_the_list_read(entries):
    assert parse_list(value_text(entries)) == entries


@given(st.dictionaries(st.text("ab;,'\" []{}-:"), st.text("ab;,'\" []{}-:")))
def test_a_map_written_is_the_map_read(entries):
    assert parse_map(value_text(entries)) == entries


def test_a_map_entry_without_a_value_is_refused():
    with pytest.raises(ValueError, match="key:value"):
        parse_map("a")
    assert parse_map("{a: 1, b: 2}") == {"a": "1", "b": "2"}


def test_an_option_is_read_under_its_key_then_its_old_keys_then_its_default():
    configuration = Configuration()
    assert options.CHECKPOINT_DIR.read(configuration) is None
    configuration.set_string("state.backend.fs.checkpointdir", "oldest")
    assert options.CHECKPOINT_DIR.read(configuration) == "oldest"
    configuration.set_string("state.checkpoints.dir", "old")
    assert options.CHECKPOINT_DIR.read(configuration) == "old"
    configuration.set_string("execution.checkpointing.dir", "new")
    assert options.CHECKPOINT_DIR.read(configuration) == "new"


def test_options_have_types():
    configuration = Configuration.from_dict(
        {
            "execution.runtime-mode": "batch",
            "pipeline.auto-watermark-interval": "1 s",
            "pipeline.global-job-parameters": "a:1,b:2",
            "execution.checkpointing.mode": "at-least-once",
            "execution.checkpointing.data-inline-threshold": "64kb",
            "pipeline.operator-chaining": "false",
        }
    ).set_integer("parallelism.default", 4)
    assert options.RUNTIME_MODE.read(configuration) is RuntimeExecutionMode.BATCH
    assert options.AUTO_WATERMARK_INTERVAL.read(configuration) == 1000
    assert options.GLOBAL_JOB_PARAMETERS.read(configuration) == {"a": "1", "b": "2"}
    assert options.CHECKPOINT_MODE.read(configuration) == "AT_LEAST_ONCE"
    assert options.CHECKPOINT_INLINE_THRESHOLD.read(configuration) == 65536
    assert options.OPERATOR_CHAINING.read(configuration) is False
    assert options.PARALLELISM.read(configuration) == 4


@pytest.mark.parametrize(
    ("key", "value", "option"),
    [
        ("parallelism.default", "0", options.PARALLELISM),
        ("parallelism.default", "many", options.PARALLELISM),
        ("pipeline.max-parallelism", "40000", options.MAX_PARALLELISM),
        ("execution.runtime-mode", "sometimes", options.RUNTIME_MODE),
        ("execution.buffer-timeout", "soon", options.BUFFER_TIMEOUT),
        ("execution.checkpointing.data-inline-threshold", "2mb", options.CHECKPOINT_INLINE_THRESHOLD),
        ("restart-strategy.exponential-delay.backoff-multiplier", "1", options.EXPONENTIAL_MULTIPLIER),
        ("pipeline.object-reuse", "yes", options.OBJECT_REUSE),
    ],
)
def test_a_bad_value_is_refused_with_the_key_it_stands_under(key, value, option):
    with pytest.raises(ConfigurationError, match=f"'{value}' of '{key}'"):
        option.read(Configuration.from_dict({key: value}))


def test_every_option_is_declared_with_a_sentence_and_a_default_that_passes_its_own_check():
    seen = list(all_options())
    assert len(seen) > 60
    assert len({option.key for option in seen}) == len(seen)
    for option in seen:
        assert option.sentence.endswith("."), option
        assert option.read(Configuration()) == option.default
        if option.default not in (None, [], {}):
            text = value_text(option.default)
            assert option.read(Configuration.from_dict({option.key: text})) == option.default


def test_every_option_that_the_code_can_read_is_listed():
    found = [value for value in vars(options).values() if isinstance(value, ConfigOption)]
    assert {option.key for option in found} == {option.key for option in all_options()}


def test_the_page_of_options_is_what_is_declared():
    written = PAGE.read_text(encoding="utf-8")
    assert written == page(), "run python -m tests.config.options_page"


def test_a_program_can_declare_options_of_its_own():
    option = ConfigOptions.key("a.b").int_type().default_value(3)
    assert option.read(Configuration()) == 3
    assert option.read(Configuration().set_string("a.b", "7")) == 7
    assert ConfigOptions.key("a.c").string_type().no_default_value().read(Configuration()) is None
    assert ConfigOptions.key("x").boolean_type().default_value(True).read(Configuration()) is True
    assert ConfigOptions.key("x").long_type().default_value(1).read(Configuration().set_integer("x", 2)) == 2
    for builder in ("float_type", "double_type"):
        option = getattr(ConfigOptions.key("x"), builder)().default_value(1.0)
        assert option.read(Configuration().set_float("x", 2.5)) == 2.5


def test_a_configuration_file_may_be_flat_or_nested(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(
        """
# a comment
parallelism.default: 4
state.backend.type: 'rocksdb'   # trailing comment
execution:
  checkpointing:
    interval: 10 s
    dir: "file:///tmp/x#1"
  runtime-mode: BATCH
pipeline.cached-files: [a, b]
env.java.opts:
  - -Xmx1g
  - -Da=b
queryable-state:
  enable: true
unset: ~
url: http://host:8081/
""",
        encoding="utf-8",
    )
    assert load_configuration(path).to_dict() == {
        "parallelism.default": "4",
        "state.backend.type": "rocksdb",
        "execution.checkpointing.interval": "10 s",
        "execution.checkpointing.dir": "file:///tmp/x#1",
        "execution.runtime-mode": "BATCH",
        "pipeline.cached-files": "a;b",
        "env.java.opts": "-Xmx1g;-Da=b",
        "queryable-state.enable": "true",
        "url": "http://host:8081/",
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: 1\nnonsense\n", "line 2: expected 'key: value'"),
        ("a: 1\n  b: 2\n", "line 2: indented below a key that already has a value"),
        ("a:\n\tb: 2\n", "line 2: indent with spaces"),
        ("a: 1\nb: c: d\n", "line 2: a value that contains ': ' needs quotes: 'b: c: d'"),
        ("a: 1\nb: 'open\nc: 2\n", "line 2: a quote is not closed"),
        ("a: 1\nb: @home\n", "line 2: .*put the value in quotes: 'b: @home'"),
        ("a: 1\nb: [1, [2]]\n", "line 2: expected text; this form of YAML is not supported here"),
        ("a: 1\nb: !tag 2\n", "line 2: expected text; this form of YAML is not supported here"),
        ("a: &one 1\nb: *one\n", "line 2: aliases are not supported here"),
        ("a: 1\n<<: {b: 2}\n", "line 2: a key must be text"),
        ("a: 1\nb: \x07\n", "line 2: .*not allowed"),
        ("- a\n", "line 1: expected 'key: value'"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(text, why):
    with pytest.raises(ConfigurationError, match=f"^flink-conf.yaml, {why}"):
        parse_configuration(text, where="flink-conf.yaml")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3: 'a' is already set, in line 1: 'a: 3'"),
        ("a.b: 1\na:\n  b: 2\n", "line 3: 'a.b' is already set, in line 1: 'b: 2'"),
        ("a:\n  b: 1\na:\n  b: 2\n", "line 4: 'a.b' is already set, in line 2"),
    ],
)
def test_a_key_is_set_once_whether_flat_or_nested(text, why):
    with pytest.raises(ConfigurationError, match=why):
        parse_configuration(text)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("'it''s'", "it's"),
        (r'"say \"hi\""', 'say "hi"'),
        (r'"tab\there"', "tab\there"),
        ("'#1'", "#1"),
        ("no", "no"),
        ("Yes", "Yes"),
        ("TRUE", "TRUE"),
        ("007", "007"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("1e3", "1e3"),
        ("3.10", "3.10"),
        ("2024-01-01", "2024-01-01"),
        ("12:30:45", "12:30:45"),
        ("=", "="),
        ("'~'", "~"),
        ("'null'", "null"),
        ("''", ""),
        ("|\n  two\n  lines", "two\nlines"),
        ("[a, 'b;c', 3]", "a;'b;c';3"),
        ("[{name: n, path: p}]", "name:n,path:p"),
    ],
)
def test_a_value_is_the_text_that_was_written(written, value):
    assert parse_configuration(f"key: {written}").to_dict() == {"key": value}


@pytest.mark.parametrize("text", ["", "# a comment\n", "---\n", "key:\n", "key: ~\n", "key: null\n"])
def test_a_key_without_a_value_is_not_set(text):
    assert parse_configuration(text).to_dict() == {}


def test_a_key_is_the_text_that_was_written():
    assert parse_configuration("on: a\n1: {2.0: b}\n'x:y': c\n").to_dict() == {"on": "a", "1.2.0": "b", "x:y": "c"}


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"nope\.yaml"):
        load_configuration(tmp_path / "nope.yaml")


def test_execution_config_and_configuration_are_one_thing():
    configuration = Configuration()
    config = ExecutionConfig(configuration)
    assert config.set_parallelism(3).set_max_parallelism(128).get_parallelism() == 3
    assert configuration.to_dict() == {"parallelism.default": "3", "pipeline.max-parallelism": "128"}
    configuration.set_string("pipeline.object-reuse", "true")
    assert config.is_object_reuse_enabled()
    assert config.set_parallelism(ExecutionConfig.PARALLELISM_DEFAULT).get_parallelism() == 1


def test_execution_config_defaults_are_flinks():
    config = ExecutionConfig()
    assert config.get_auto_watermark_interval() == 200
    assert config.get_max_parallelism() == -1
    assert config.get_latency_tracking_interval() == 0
    assert config.get_task_cancellation_interval() == 30_000
    assert config.get_task_cancellation_timeout() == 180_000
    assert config.get_global_job_parameters() == {}
    assert config.has_auto_generated_uids_enabled()
    assert config.is_closure_cleaner_enabled()
    assert not config.is_object_reuse_enabled()
    assert not config.is_use_snapshot_compression()
    assert not config.has_generic_types_disabled()


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.set_parallelism(0),
        lambda c: c.set_max_parallelism(0),
        lambda c: c.set_max_parallelism(40_000),
        lambda c: c.set_auto_watermark_interval(-1),
    ],
)
def test_execution_config_refuses_at_the_call(call):
    config = ExecutionConfig()
    with pytest.raises(ValueError):
        call(config)
    assert config.to_configuration() == Configuration()


@given(st.dictionaries(st.text("ab,:;", min_size=1), st.text("ab,:' ")))
def test_global_job_parameters_survive_any_text(parameters):
    config = ExecutionConfig().set_global_job_parameters(parameters)
    assert config.get_global_job_parameters() == parameters


def test_toggles_toggle():
    config = ExecutionConfig()
    for name, question in [
        ("object_reuse", "is_object_reuse_enabled"),
        ("auto_generated_uids", "has_auto_generated_uids_enabled"),
        ("closure_cleaner", "is_closure_cleaner_enabled"),
        ("force_avro", "is_force_avro_enabled"),
        ("force_kryo", "is_force_kryo_enabled"),
    ]:
        assert getattr(getattr(config, f"enable_{name}")(), question)() is True
        assert getattr(getattr(config, f"disable_{name}")(), question)() is False
    assert config.disable_generic_types().has_generic_types_disabled()
