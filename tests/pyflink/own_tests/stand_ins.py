"""Stands in for the modules that PyFlink's tests import and Ekorn does not have.

The test cases give each class a temporary folder, and an environment where PyFlink's start a cluster. The sink collects
into a file, because it runs in a slot. Whatever a test asks of Flink's JVM raises `NoJava`: such a test does not apply.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import os
import pickle
import shutil
import sys
import tempfile
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any

from ekorn.common import Configuration, Row, WatermarkStrategy
from ekorn.common.watermark_strategy import TimestampAssigner
from ekorn.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from ekorn.datastream.functions import SinkFunction
from ekorn.functions.watermark_strategy import Watermark, WatermarkGenerator
from ekorn.program.streams.sink_methods import SinkMethods
from ekorn.types.basic_types import FloatTypeInfo
from ekorn.types.java_text import double_text, float_text, timestamp_text

RESULTS = Path(os.environ.setdefault("EKORN_TEST_RESULTS", tempfile.mkdtemp(prefix="ekorn-own-tests-")))


class NoJava(Exception):
    """A test asked for something of Flink's JVM, or of the Table API."""


class Java:
    """A class, a method or an object of Flink's JVM, by its dotted name. It can be named, and not used."""

    def __init__(self, name: str = "") -> None:
        self._name = name

    def __getattr__(self, name: str) -> Java:
        if name.startswith("__"):
            raise AttributeError(name)
        return Java(f"{self._name}.{name}".lstrip("."))

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        if self._name.endswith("PerElementWatermarkGenerator.getSupplier"):
            return PerElementWatermarks
        if self._name.endswith("eventtime.WatermarkStrategy.forGenerator"):
            return WatermarkStrategy.for_generator(lambda context: arguments[0]())
        raise NoJava(self._name)

    def __eq__(self, other: object) -> bool:
        raise NoJava(self._name)

    def __radd__(self, other: object) -> Any:
        raise NoJava(self._name)

    __hash__ = object.__hash__


class PerElementWatermarks(WatermarkGenerator):
    """Emits the timestamp of each record as a watermark, as the Java class does that PyFlink's tests use."""

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output: Any) -> None:
        """Emit nothing: each record has brought its watermark."""


class Strategies:
    """`WatermarkStrategy` as PyFlink's tests call it: also with a strategy of the JVM, which is one of ours here."""

    def __call__(self, java: Any) -> Any:
        return java

    def __getattr__(self, name: str) -> Any:
        return getattr(WatermarkStrategy, name)


class JavaEnvironment:
    """The environment as PyFlink's tests reach it: through the object of the JVM."""

    def __init__(self, environment: Any) -> None:
        self.environment = environment

    def __getattr__(self, name: str) -> Any:
        return getattr(Java("StreamExecutionEnvironment"), name)


class JavaConfiguration:
    """Sets options of an environment by the names of Java's methods."""

    def __init__(self, environment: Any) -> None:
        self.environment = environment

    def setString(self, key: str, value: str) -> None:
        self.environment.configure(Configuration.from_dict({key: value}))

    setInteger = setBoolean = setString

    def __getattr__(self, name: str) -> Any:
        return getattr(Java("Configuration"), name)


class TestConfiguration(Configuration):
    """A `Configuration` that can be made of the environment's, and then changes the environment."""

    def __init__(self, other: Any = None, j_configuration: Any = None) -> None:
        super().__init__(other)
        self._of = None
        if isinstance(j_configuration, JavaConfiguration):
            of = j_configuration.environment
            super().add_all(of.get_configuration())
            self._of = of
        elif j_configuration is not None:
            raise NoJava("Configuration")

    def set_string(self, key: str, value: str) -> Any:
        if self._of is not None:
            self._of.configure(Configuration.from_dict({key: str(value)}))
        return super().set_string(key, value)

    def set_integer(self, key: str, value: int) -> Any:
        if self._of is not None:
            self._of.configure(Configuration.from_dict({key: str(value)}))
        return super().set_integer(key, value)


class CollectingSink(SinkFunction):
    """Collects the records of a stream: pickled, in a file that each call of `invoke` appends to."""

    __test__ = False

    def __init__(self) -> None:
        descriptor, self._file = tempfile.mkstemp(dir=RESULTS)
        os.close(descriptor)
        self._type: Any = None

    def takes(self, stream: Any) -> None:
        """Remember the type of the stream, which says how its records look as text."""
        self._type = stream._type()

    def invoke(self, value: Any, context: Any) -> None:
        with open(self._file, "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(pickle.dumps(value))

    def get_results(self, is_python_object: bool = False, stringify: bool = True) -> list[Any]:
        """Return the records so far, as PyFlink's sink does: as text, or as they are; and forget them."""
        values = []
        with open(self._file, "rb") as file, contextlib.suppress(EOFError):
            while True:
                values.append(pickle.load(file))
        self.clear()
        if is_python_object:
            return [str(value) for value in values] if stringify else values
        return [java_text(value, self._type) for value in values]

    def clear(self) -> None:
        Path(self._file).write_bytes(b"")


def java_text(value: Any, type_info: Any = None) -> str:
    """Return what Java's `toString` would: of the object that Flink's JVM has in the place of a Python value."""
    types = type_info.get_field_types() if hasattr(type_info, "get_field_types") else None
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case float():
            return float_text(value) if isinstance(type_info, FloatTypeInfo) else double_text(value)
        case Row():
            fields = [java_text(field, types[at] if types else None) for at, field in enumerate(value)]
            return f"{value.get_row_kind()}[{', '.join(fields)}]"
        case tuple():
            return f"({','.join(java_text(each, types[at] if types else None) for at, each in enumerate(value))})"
        case list():
            of = getattr(type_info, "elem_type", None)
            return f"[{', '.join(java_text(each, of) for each in value)}]"
        case bytes() | bytearray():
            return str([byte - 256 if byte > 127 else byte for byte in value])
        case datetime.datetime():
            return timestamp_text(value)
        case datetime.time():
            return value.strftime("%H:%M:%S")  # java.sql.Time has seconds
        case _:
            return str(value)


class SecondColumnTimestampAssigner(TimestampAssigner):
    """Takes the second field as the timestamp."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


class PyFlinkTestCase(unittest.TestCase):
    """A test with a temporary folder."""

    __test__ = False
    tempdir = ""
    maxDiff = None

    @classmethod
    def setUpClass(cls) -> None:
        cls.tempdir = tempfile.mkdtemp(dir=RESULTS)

    @classmethod
    def tearDownClass(cls) -> None:
        shutil.rmtree(cls.tempdir, ignore_errors=True)

    @classmethod
    def assert_equals(cls, actual: Any, expected: Any) -> None:
        assert sorted(actual) == sorted(expected)


class PyFlinkITTestCase(PyFlinkTestCase):
    """A test with an environment of parallelism 2."""

    MODE = RuntimeExecutionMode.STREAMING

    def setUp(self) -> None:
        super().setUp()
        self.env = StreamExecutionEnvironment.get_execution_environment()
        self.env.set_parallelism(2)
        self.env.set_runtime_mode(self.MODE)


class PyFlinkStreamingTestCase(PyFlinkITTestCase):
    """A test in STREAMING."""


class PyFlinkUTTestCase(PyFlinkITTestCase):
    """A test in STREAMING, without PyFlink's table environment."""


class PyFlinkBatchTestCase(PyFlinkITTestCase):
    """A test in BATCH."""

    MODE = RuntimeExecutionMode.BATCH


class CompletenessTestCase:
    """Compares with Java's methods, so no test of it applies."""

    __test__ = False


def _no_java(*arguments: Any, **keywords: Any) -> Any:
    raise NoJava("a call of Flink's JVM or of the Table API")


class _Gateway:
    jvm = Java()


def _modules() -> dict[str, dict[str, Any]]:
    cases = (PyFlinkTestCase, PyFlinkITTestCase, PyFlinkStreamingTestCase, PyFlinkUTTestCase, PyFlinkBatchTestCase)
    return {
        "pyflink.testing": {},
        "pyflink.testing.test_case_utils": {
            **{case.__name__: case for case in cases},
            "PythonAPICompletenessTestCase": CompletenessTestCase,
            "exec_insert_table": _no_java,
            "invoke_java_object_method": _no_java,
            "to_java_data_structure": _no_java,
        },
        "pyflink.datastream.tests": {},
        "pyflink.datastream.formats.tests": {},
        "pyflink.datastream.connectors.tests": {},
        "pyflink.common.tests": {},
        "pyflink.datastream.tests.test_util": {
            "DataStreamTestSinkFunction": CollectingSink,
            "SecondColumnTimestampAssigner": SecondColumnTimestampAssigner,
        },
        "pyflink.java_gateway": {"get_gateway": _Gateway},
        "pyflink.util.java_utils": {
            "get_j_env_configuration": lambda java_environment: JavaConfiguration(java_environment.environment),
            **dict.fromkeys(("load_java_class", "to_jarray", "is_instance_of", "get_field_value"), _no_java),
        },
        "pyflink.find_flink_home": {"_find_flink_source_root": _no_java, "_find_flink_home": _no_java},
        "pyflink.pyflink_gateway_server": {
            "on_windows": lambda: False,
            **dict.fromkeys(("get_log_dir", "prepare_environment_variables"), _no_java),
        },
        "pyflink.table.udf": {"udf": _no_java},
        "pyflink.table.expressions": {"col": _no_java},
    }


# Names that the tests import from modules which Ekorn has, and that belong to Flink's JVM or to the Table API.
_NAMES = {
    "pyflink.common.typeinfo": ("_from_java_type",),
    "pyflink.common.serializer": (),
    "pyflink.datastream.state_backend": ("_from_j_state_backend", "CustomStateBackend"),
    "pyflink.datastream.checkpoint_storage": ("_from_j_checkpoint_storage", "CustomCheckpointStorage"),
    "pyflink.datastream.utils": ("create_hadoop_configuration",),
    "pyflink.table": ("StreamTableEnvironment", "EnvironmentSettings"),
    "pyflink.table.types": ("_to_java_data_type",),
}


def install() -> None:
    """Make the stand-ins importable beside Ekorn's modules, in this process and, called there too, in the slots."""
    import importlib

    from ekorn.pyflink import install as install_alias

    install_alias()
    import pyflink.common
    import pyflink.common.configuration
    import pyflink.common.watermark_strategy

    for name, content in _modules().items():
        if name == "pyflink.util.java_utils":
            sys.modules.setdefault("pyflink.util", ModuleType("pyflink.util"))
        module = ModuleType(name)
        module.__path__ = []
        module.__dict__.update(content)
        sys.modules[name] = module
    for name, missing in _NAMES.items():
        module = importlib.import_module(name)
        for each in missing:
            if not hasattr(module, each):
                setattr(module, each, Java(each))
    pyflink.common.WatermarkStrategy = Strategies()
    pyflink.common.watermark_strategy.WatermarkStrategy = Strategies()
    pyflink.common.Configuration = TestConfiguration
    pyflink.common.configuration.Configuration = TestConfiguration
    StreamExecutionEnvironment._j_stream_execution_environment = property(JavaEnvironment)  # type: ignore[attr-defined]
    _let_sinks_know_their_streams()


def _let_sinks_know_their_streams() -> None:
    add_sink = SinkMethods.add_sink

    def add(stream: Any, sink: Any) -> Any:
        if isinstance(sink, CollectingSink):
            sink.takes(stream)
        return add_sink(stream, sink)

    SinkMethods.add_sink = add  # type: ignore
