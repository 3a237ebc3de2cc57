"""The order of the rooms, as drawn in the style guide, and no import cycles within a room."""

import ast
import re
import subprocess
import sys
from pathlib import Path

from tests.imports import SOURCE, cycles, imports_of, module_name, source_files

# A room may import rooms on lines above its own, never below, nor beside it. Each module of `legacy` holds spellings of
# Flink 1.x for one room, so each has a line of its own.
LINES = [
    ["errors", "faults", "clock", "garbage", "missing_names"],
    ["extras"],
    ["types"],
    ["config", "metrics"],
    ["legacy.time_characteristic", "legacy.state_backends"],
    ["functions"],
    ["legacy.selection", "legacy.timestamp_extractors", "legacy.spellings"],
    ["keygroups"],
    ["columns"],
    ["graph", "storage"],
    ["state"],
    ["connectors", "codegen"],
    ["legacy.kafka", "legacy.streaming_file_sink"],
    ["operators"],
    ["subtask"],
    ["checkpoint"],
    ["links"],
    ["slot_protocol"],
    ["slot"],
    ["web"],
    ["dashboard"],
    ["engine"],
    ["driver"],
    ["rest"],
    ["reporters"],
    ["legacy.split_stream"],
    ["program"],
    ["batch"],
    ["state_processor", "queryable"],
    ["service"],
    ["cli"],
    ["client", "common", "datastream", "dataset", "pyflink", "table"],
    ["testing"],
]
LINE_OF = {room: number for number, rooms in enumerate(LINES) for room in rooms}
MAY_IMPORT_PYSPARK = (Path("engine/spark"), Path("batch"), Path("state_processor/spark"))


NO_ROOM = {"", "__main__", "legacy"}  # the package itself, and a package of modules that are rooms: docstrings alone


def room_of(module: str) -> str:
    """Return the room of a module of ekorn: the first part of its name, and in `legacy` the module itself."""
    parts = module.split(".")[1:]
    return ".".join(parts[:2] if parts[:1] == ["legacy"] else parts[:1])


def test_every_room_has_its_line():
    rooms = {room_of(module_name(path)) for path in source_files()} - NO_ROOM
    assert rooms <= set(LINE_OF), f"rooms without a line: {sorted(rooms - set(LINE_OF))}"


def test_imports_go_up():
    wrong = []
    for path in source_files():
        room = room_of(module_name(path))
        if room in NO_ROOM:
            continue
        for each in imports_of(path):
            if not each.module.startswith("ekorn.") or room_of(each.module) == room:
                continue
            if LINE_OF.get(room_of(each.module), len(LINES)) >= LINE_OF[room]:
                wrong.append(f"{path.relative_to(SOURCE)}:{each.line} imports {each.module}, which is not above {room}")
    assert not wrong, "\n".join(wrong)


def test_the_package_of_legacy_imports_nothing():
    assert imports_of(SOURCE / "legacy" / "__init__.py") == []


def test_no_modules_import_each_other_in_a_circle():
    edges = {
        module_name(path): {each.module for each in imports_of(path) if not each.only_for_types}
        for path in source_files()
    }
    found = cycles(edges)
    assert not found, "\n".join("circle: " + ", ".join(modules) for modules in found)


def test_a_circle_of_imports_is_found():
    edges = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a", "d"}}
    assert cycles(edges) == [["b", "c"]]


def test_only_the_spark_engine_the_batch_api_and_the_state_sources_know_of_spark():
    wrong = []
    for path in source_files():
        below = path.relative_to(SOURCE)
        if not any(folder in below.parents for folder in MAY_IMPORT_PYSPARK):
            wrong += [
                f"{below}:{each.line} imports {each.module}"
                for each in imports_of(path)
                if each.module.split(".")[0] in ("pyspark", "py4j")
            ]
    assert not wrong, "\n".join(wrong)


def test_only_slots_and_engines_for_tests_import_what_runs_in_a_slot():
    """Check that other processes know slots by `slot_protocol` alone; they start one by the name of its main module."""
    wrong = [
        f"{path.relative_to(SOURCE)}:{each.line} imports {each.module}"
        for path in source_files()
        for each in imports_of(path)
        if re.match(r"ekorn\.slot(\.|$)", each.module) and room_of(module_name(path)) not in ("slot", "testing")
    ]
    assert not wrong, "\n".join(wrong)


def test_the_streaming_api_is_imported_without_spark():
    program = "import sys; sys.modules['pyspark'] = None; import ekorn.datastream, ekorn.common"
    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONPATH": str(SOURCE.parent)})


def test_no_test_file_imports_another():
    tests = Path(__file__).parent
    wrong = []
    for path in sorted(tests.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and re.match(r"tests\..*\btest_", node.module):
                wrong.append(
                    f"{path.relative_to(tests)}:{node.lineno} imports {node.module}; move it to a module of its own"
                )
    assert not wrong, "\n".join(wrong)
