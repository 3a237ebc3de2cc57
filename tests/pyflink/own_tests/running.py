"""Loads PyFlink's test files unchanged, runs their tests, and says of each whether it passed or does not apply."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import traceback
import unittest
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import cloudpickle

ROOT = Path(__file__).parents[3]
PASSED, FAILED, NOT_HERE = "passed", "failed", "does not apply"

# The files with tests of what Ekorn has: no Table API, no connector whose other side is not here.
FILES = (
    "common/tests/test_configuration.py",
    "common/tests/test_execution_config.py",
    "common/tests/test_serialization_schemas.py",
    "common/tests/test_typeinfo.py",
    "common/tests/test_watermark_strategy.py",
    "datastream/tests/test_async_function.py",
    "datastream/tests/test_check_point_config.py",
    "datastream/tests/test_checkpoint_storage.py",
    "datastream/tests/test_data_stream.py",
    "datastream/tests/test_slot_sharing_group.py",
    "datastream/tests/test_state_backend.py",
    "datastream/tests/test_stream_execution_environment.py",
    "datastream/tests/test_window.py",
    "datastream/formats/tests/test_avro.py",
    "datastream/formats/tests/test_csv.py",
    "datastream/formats/tests/test_json.py",
    "datastream/formats/tests/test_parquet.py",
    "datastream/formats/tests/test_orc.py",
    "datastream/connectors/tests/test_file_system.py",
    "datastream/connectors/tests/test_jdbc.py",
    "datastream/connectors/tests/test_kafka.py",
    "datastream/connectors/tests/test_seq_source.py",
)


@dataclass(frozen=True)
class Outcome:
    """What became of one test: `why` is the last line of the error, `text` the whole of it."""

    test: str
    result: str
    why: str = ""
    text: str = ""


def pyflink_folder(sources: str) -> Path:
    """Return the folder of PyFlink in a copy of Flink's sources.

    Raises:
        FileNotFoundError: The path holds no sources of Flink.
    """
    folder = Path(sources) / "flink-python" / "pyflink"
    if not (folder / FILES[0]).is_file():
        raise FileNotFoundError(f"{sources} holds no sources of Flink: {folder / FILES[0]} is missing")
    return folder


def run(folder: Path, wanted: str = "", say: bool = False) -> list[Outcome]:
    """Run the tests of all files whose names contain `wanted`, and return what became of each."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    from tests.pyflink.own_tests import stand_ins

    stand_ins.install()
    outcomes: list[Outcome] = []
    for file in FILES:
        try:
            module = _loaded(folder, file)
        except ImportError as error:
            outcomes.append(Outcome(Path(file).stem, FAILED, f"cannot be imported: {error}"))
            continue
        suite = unittest.defaultTestLoader.loadTestsFromModule(module)
        tests = [test for test in _flat(suite) if wanted in _name(file, test)]
        # One class after the other: `setUpClass` and `tearDownClass` are called by the suite.
        result = _Recorder(file, outcomes, say)
        unittest.TestSuite(tests).run(result)
    return outcomes


class _Recorder(unittest.TestResult):
    def __init__(self, file: str, outcomes: list[Outcome], say: bool) -> None:
        super().__init__()
        self._file, self._outcomes, self._say = file, outcomes, say

    def addSuccess(self, test: unittest.TestCase) -> None:
        self._note(test, PASSED)

    def addFailure(self, test: unittest.TestCase, err: object) -> None:
        error = err[1]  # type: ignore[index]
        text = "".join(traceback.format_exception(error))
        not_here = "NoJava" in text or re.search(r"no attribute '(_j_\w+|get_java_\w+)'", text) is not None
        self._note(test, NOT_HERE if not_here else FAILED, f"{type(error).__name__}: {error}".split("\n")[0], text)

    addError = addFailure

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self._note(test, NOT_HERE, reason)

    def _note(self, test: unittest.TestCase, result: str, why: str = "", text: str = "") -> None:
        outcome = Outcome(_name(self._file, test), result, why, text)
        self._outcomes.append(outcome)
        if self._say:
            print(f"{result:15} {outcome.test}  {why[:200]}", flush=True)


def _name(file: str, test: unittest.TestCase) -> str:
    return f"{Path(file).stem}.{type(test).__name__}.{getattr(test, '_testMethodName', test)}"


def _flat(suite: unittest.TestSuite) -> list[unittest.TestCase]:
    tests: list[unittest.TestCase] = []
    for each in suite:
        tests += _flat(each) if isinstance(each, unittest.TestSuite) else [each]
    return tests


def _loaded(folder: Path, file: str) -> ModuleType:
    """Load one file of tests; its functions travel to the slots by value, because the slots cannot import it."""
    name = "pyflink." + file.removesuffix(".py").replace("/", ".")
    spec = importlib.util.spec_from_file_location(name, folder / file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    cloudpickle.register_pickle_by_value(module)
    return module
