"""Every option is declared once: settings take types, defaults and checks from the options that fill their fields."""

import ast
import dataclasses
from importlib import import_module
from typing import Any

import pytest

from ekorn.config import options
from ekorn.config.configuration import Configuration
from ekorn.config.option import ConfigOption
from ekorn.config.options import rocksdb, service
from ekorn.config.options.kinds import count
from ekorn.config.options.listing import MODULES, SERVICE_MODULES
from ekorn.config.settings.fields import filled_by, fillings, part, read_settings
from ekorn.errors import ConfigurationError
from tests.imports import SOURCE, module_name, source_files

Option = ConfigOption[Any]

# Fields of settings classes that no option fills: the caller gives them, or they follow from something else.
GIVEN: dict[str, set[str]] = {
    "AutoscalerSettings": set(),
    "CheckpointSettings": {"max_state_bytes", "ignored_in_flight_checkpoint_id"},
    "ClusterSettings": {"directory"},
    "ElasticitySettings": {"reactive", "autoscaler"},
    "ExecutionSettings": {
        *("batch", "cached_files", "checkpointing", "unaligned", "releases_at_once", "state_latency", "memory"),
        *("watermark_interval_set", "in_slots"),
    },
    "GraphSettings": {"name", "unaligned_checkpoints"},
    "JobSettings": {
        *("job_name", "job_id", "restart", "rocksdb", "parallelism_set", "reporters", "configuration"),
        *("spark_session", "graph_at"),
    },
    "ReporterSettings": {"name", "kind", "interval_ms", "given"},
    "RocksDBSettings": {"native_metrics", "counters"},
    "SlotMemory": {"parts", "managed_bytes", "cpu_cores", "raised_by"},
    "ServiceSettings": {"folder", "web", "slots", "cluster", "configuration"},
    "WebSettings": {"address"},
}

# Settings that are made from the settings above. Their defaults are those of the options.
DERIVED: dict[str, dict[str, Option]] = {
    "CoordinatorSettings": {
        "timeout_ms": options.CHECKPOINT_TIMEOUT,
        "min_pause_ms": options.CHECKPOINT_MIN_PAUSE,
        "max_concurrent": options.CHECKPOINT_MAX_CONCURRENT,
        "tolerable_failures": options.CHECKPOINT_TOLERABLE_FAILURES,
        "after_tasks_finish": options.CHECKPOINT_AFTER_TASKS_FINISH,
        "backlog_interval_ms": options.CHECKPOINT_INTERVAL_DURING_BACKLOG,
    },
    "PacingSettings": {
        "target_ms": options.EPOCH_TARGET,
        "max_bytes": options.EPOCH_SOURCE_BYTES,
        "latency_target_ms": options.EPOCH_LATENCY_TARGET,
    },
}

# Settings of something else than a job or a service, which have no keys.
WITHOUT_KEYS = {"RunSettings", "WriterSettings"}

# Options that fill a field of two settings objects, or two fields of one.
FILL_TWO: set[Option] = {options.PARALLELISM, options.PYTHON_REQUIREMENTS}

# Options that fill no field, with what reads them.
READ_BY: dict[str, set[Option]] = {
    "batch/iterations/iteration_runner.py": {options.ITERATION_ATTEMPTS},
    "config/execution_config.py": {
        *(options.CLOSURE_CLEANER, options.FORCE_AVRO, options.FORCE_KRYO, options.GENERIC_TYPES),
        *(options.TASK_CANCELLATION_INTERVAL, options.TASK_CANCELLATION_TIMEOUT),
    },
    "config/restart_strategy.py": {options.RESTART_STRATEGY},
    "config/settings/elasticity_settings.py": {options.AUTOSCALER, options.SCHEDULER_MODE},
    "config/settings/job_names.py": {options.JOB_NAME},
    "config/settings/job_settings.py": {options.JOB_ID},
    "config/settings/memory_settings.py": {
        *(options.MEMORY_FLINK_SIZE, options.MEMORY_TASK_HEAP, options.MEMORY_TASK_OFF_HEAP),
        *(options.MEMORY_MANAGED_SIZE, options.MEMORY_MANAGED_FRACTION),
        *(options.MEMORY_FRAMEWORK_HEAP, options.MEMORY_FRAMEWORK_OFF_HEAP),
        *(options.MEMORY_NETWORK_FRACTION, options.MEMORY_NETWORK_MIN, options.MEMORY_NETWORK_MAX),
        *(options.MEMORY_METASPACE, options.MEMORY_OVERHEAD_FRACTION),
        *(options.MEMORY_OVERHEAD_MIN, options.MEMORY_OVERHEAD_MAX),
    },
    "config/settings/metric_settings.py": {options.METRICS_REPORTERS, options.STATE_LATENCY_ENABLED},
    "config/settings/rocksdb_settings.py": {rocksdb.PREDEFINED_OPTIONS},
    "config/settings/service_settings.py": {
        *(service.HA_STORAGE_DIR, service.HA_TYPE, service.SERVICE_DIR, service.SERVICE_PORT)
    },
    "config/settings/web_settings.py": {options.WEB_ENCRYPTION},
    "program/environment/stream_execution_environment.py": {
        *(options.CACHED_FILES, options.SPARK_JARS),
        *(options.SPARK_DRIVER_CLASSPATH, options.SPARK_EXECUTOR_CLASSPATH),
    },
}


def declared():
    """Return every option with its name in the module that declares it. RocksDB's metrics have no names there."""
    modules = (*MODULES, *SERVICE_MODULES, rocksdb)
    return {
        value: name for module in modules for name, value in vars(module).items() if isinstance(value, ConfigOption)
    }


def settings_classes():
    """Return the classes that hold settings: those named so, and those with a field that an option fills."""
    found = []
    for path in source_files():
        text = path.read_text(encoding="utf-8")
        if "Settings" not in text and "filled_by" not in text:
            continue
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(each) for each in node.decorator_list):
                made = getattr(import_module(module_name(path)), node.name)
                if node.name.endswith("Settings") or fillings(made):
                    found.append(made)
    return [each for each in found if each.__name__ not in WITHOUT_KEYS]


CLASSES = settings_classes()


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_field_has_the_default_of_its_option_or_is_given_by_the_caller(kind):
    if kind.__name__ in DERIVED:
        defaults = {each.name: each.default for each in dataclasses.fields(kind)}
        for name, option in DERIVED[kind.__name__].items():
            assert defaults[name] == option.default, name
        return
    filled = fillings(kind)
    others = set()
    for each in dataclasses.fields(kind):
        if each.name in filled:
            factory: Any = each.default_factory
            made = factory() if each.default is dataclasses.MISSING else each.default
            assert made == filled[each.name].read(Configuration()), each.name
        elif "part" not in each.metadata:
            others.add(each.name)
    assert others == GIVEN.get(kind.__name__, set()), "say which option fills a field, or that its caller gives it"


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_no_number_stands_where_an_option_has_the_default(kind):
    path = SOURCE.parent / (kind.__module__.replace(".", "/") + ".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    definition = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind.__name__)
    filled = fillings(kind).keys() | DERIVED.get(kind.__name__, {}).keys()
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id in filled:
            assert isinstance(node.value, ast.Call | ast.Attribute), node.target.id


def test_an_option_fills_one_field():
    fields = [filling.option for kind in CLASSES for filling in fillings(kind).values()]
    assert {option.key for option in fields if fields.count(option) > 1} == {option.key for option in FILL_TWO}


def test_an_option_that_fills_no_field_is_listed_with_what_reads_it():
    names = declared()
    filled = {
        option
        for kind in CLASSES
        for filling in fillings(kind).values()
        for option in (filling.option, *filling.others)
    }
    listed = {option for read in READ_BY.values() for option in read}
    assert sorted(names[option] for option in names.keys() - filled) == sorted(names[option] for option in listed)
    for file, read in READ_BY.items():
        text = (SOURCE / file).read_text(encoding="utf-8")
        assert [names[option] for option in read if f"options.{names[option]}" not in text] == [], file


@dataclasses.dataclass(frozen=True)
class Inner:
    names: dict[str, str] = filled_by(options.GLOBAL_JOB_PARAMETERS, by=dict)


@dataclasses.dataclass(frozen=True)
class Outer:
    title: str
    size: int = filled_by(count("size", 3, "A size.", least=1))
    area: int = filled_by(count("size", 3, "A size."), count("height", 2, "A height."), by=lambda a, b: a * b)
    inner: Inner = part(Inner)


def test_settings_without_a_configuration_have_the_defaults_of_options():
    made = Outer("a")
    assert made == Outer("a", 3, 6, Inner({}))
    assert made.inner.names is not Outer("b").inner.names


def test_settings_are_read_with_their_parts_and_what_is_given_is_not_read():
    configuration = Configuration.from_dict({"size": "4", "height": "5", "pipeline.global-job-parameters": "a:1"})
    assert read_settings(Outer, configuration, title="t") == Outer("t", 4, 20, Inner({"a": "1"}))
    assert read_settings(Outer, configuration, title="t", size=0, inner=Inner()) == Outer("t", 0, 20, Inner())


def test_a_value_out_of_range_names_its_key():
    with pytest.raises(ConfigurationError, match="'size': must be at least 1"):
        read_settings(Outer, Configuration.from_dict({"size": "0"}), title="t")
