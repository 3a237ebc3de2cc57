"""`pyflink` as another name of ekorn: imports, identity of classes, and the error for a missing name."""

import importlib
import pickle
import subprocess
import sys

import cloudpickle
import pytest

import ekorn.common
import ekorn.datastream.functions
import ekorn.datastream.window
from ekorn.program.pyflink_alias import AliasFinder, uninstall
from ekorn.pyflink import install

pytestmark = pytest.mark.usefixtures("aliased")


@pytest.fixture(autouse=True)
def installed(aliased):
    install()


def run(statement):
    names = {}
    exec(statement, names)
    return names


def test_classes_are_the_same_objects():
    names = run("from pyflink.common import Row, Types\nfrom pyflink.datastream.functions import MapFunction")
    assert names["Row"] is ekorn.common.Row
    assert names["Types"] is ekorn.common.Types
    assert names["MapFunction"] is ekorn.datastream.functions.MapFunction


@pytest.mark.parametrize(
    "statement",
    [
        "import pyflink.datastream.window as w; found = w.TimeWindow",
        "import pyflink.datastream.window; found = pyflink.datastream.window.TimeWindow",
        "from pyflink.datastream import window; found = window.TimeWindow",
        "from pyflink.datastream.window import TimeWindow as found",
        "from pyflink.datastream.window import *; found = TimeWindow",
        "import importlib; found = importlib.import_module('pyflink.datastream.window').TimeWindow",
    ],
)
def test_every_way_to_import(statement):
    assert run(statement)["found"] is ekorn.datastream.window.TimeWindow


def test_everything_with_a_star():
    names = run("from pyflink.common import *")
    assert set(ekorn.common.__all__) <= names.keys()


def test_modules_are_loaded_when_they_are_asked_for():
    run("import pyflink.common")
    assert "pyflink.datastream" not in sys.modules


def test_names_can_be_asked_for_without_an_error():
    names = run("import pyflink.common as common")
    assert not hasattr(names["common"], "NoSuchName")
    assert getattr(names["common"], "NoSuchName", 7) == 7


def test_the_version_is_that_of_the_api():
    assert run("from pyflink import __version__ as found")["found"].startswith("2.")


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("import pyflink.table.catalog", "Ekorn has no pyflink.table.catalog; .*DataStream API.*Spark"),
        ("from pyflink import ml", "Ekorn has no pyflink.ml"),
        ("from pyflink.table import StreamTableEnvironment", "Ekorn has no pyflink.table"),
        ("from pyflink.table.expressions import col", "Ekorn has no pyflink.table"),
        ("from pyflink.java_gateway import get_gateway", "no JVM"),
        ("from pyflink.common import Typess", "pyflink.common has Types"),
        ("from pyflink.datastream.functions import MapFunctoin", "pyflink.datastream.functions has MapFunction"),
        ("from pyflink.common import TimeWindow", "pyflink.datastream has TimeWindow"),
        ("from pyflink.datastream.connectors.pulsar import PulsarSource", "extend SourceFunction"),
        ("from pyflink.common.typeinfo import Absent", "nothing like it in pyflink.common.typeinfo"),
        ("from pyflink.testing import test_case_utils", "ekorn.testing"),
        (
            "from pyflink.datastream.connectors.elasticsearch import Elasticsearch7SinkBuilder",
            "give every document an id",
        ),
        ("from pyflink.datastream.connectors.pulsar import PulsarSource", "pulsar; use KafkaSource.*pulsar-client"),
        ("from pyflink.datastream.connectors.kinesis import KinesisStreamsSink", "kinesis; use KafkaSource.*boto3"),
        (
            "from pyflink.datastream.connectors.cassandra import CassandraSink",
            "use JdbcSink.*cassandra-driver",
        ),
        ("import pyflink.engine.local", "Ekorn has no pyflink.engine"),
        ("import pyflink.common.typeinfo.deeper", "Ekorn has no pyflink.common.typeinfo.deeper"),
    ],
)
def test_a_name_that_is_not_there_says_what_to_use(statement, says):
    with pytest.raises(ImportError, match=says):
        run(statement)


def test_a_missing_module_can_be_tried():
    names = run("try:\n    import pyflink.table.catalog\nexcept ModuleNotFoundError as error:\n    name = error.name")
    assert names["name"] == "pyflink.table.catalog"


def test_a_module_that_fails_to_load_shows_its_own_error(tmp_path, monkeypatch):
    package = tmp_path / "extra.py"
    package.write_text("import no_such_dependency\n")
    monkeypatch.setattr(ekorn.common, "__path__", [*ekorn.common.__path__, str(tmp_path)])
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        run("import pyflink.common.extra")


def test_installing_twice_is_installing_once():
    install()
    assert sum(isinstance(finder, AliasFinder) for finder in sys.meta_path) == 1


def test_pickles_of_objects_do_not_mention_the_alias():
    names = run("from pyflink.common import Row, Types")
    assert b"pyflink" not in pickle.dumps([names["Row"](1, "a"), names["Row"]])


def test_functions_that_use_an_aliased_module_travel():
    names = run("import pyflink.datastream.window as w\ndef end(): return w.TimeWindow(0, 5).end")
    sent = cloudpickle.dumps(names["end"])
    code = (
        "import pickle, sys\nfrom ekorn.pyflink import install\ninstall()\n"
        "print(pickle.loads(sys.stdin.buffer.read())())"
    )
    done = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, timeout=60, check=True)
    assert done.stdout.strip() == b"5"


def test_uninstalling_gives_pyflink_its_name_back(real_pyflink, monkeypatch):
    run("import pyflink.common")
    uninstall()
    uninstall()
    monkeypatch.syspath_prepend(str(real_pyflink))
    assert run("import pyflink")["pyflink"].REAL


@pytest.fixture
def real_pyflink(tmp_path):
    """A package that is called pyflink, as if PyFlink were installed."""
    package = tmp_path / "pyflink"
    package.mkdir()
    (package / "__init__.py").write_text("REAL = True\n")
    (package / "ml.py").write_text("REAL = True\n")
    return tmp_path


def test_an_installed_pyflink_is_not_looked_at(real_pyflink, monkeypatch):
    monkeypatch.syspath_prepend(str(real_pyflink))
    names = run("import pyflink")
    assert not hasattr(names["pyflink"], "REAL")
    with pytest.raises(ImportError, match=r"Ekorn has no pyflink\.ml"):
        run("import pyflink.ml")


def test_a_pyflink_that_was_imported_before_is_reported(real_pyflink, monkeypatch):
    uninstall()
    monkeypatch.syspath_prepend(str(real_pyflink))
    importlib.import_module("pyflink")
    with pytest.raises(ImportError, match=f"already imported, from {real_pyflink}"):
        install()
