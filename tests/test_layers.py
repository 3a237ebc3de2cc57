"""The order of the rooms, as drawn in the style guide, and no import cycles within a room."""

import ast
import re
import subprocess
import sys
from pathlib import Path

from tests.imports import SOURCE, cycles, imports_of, module_name, source_files

# A room may import rooms on lines above its own, never below, nor beside it.
LINES = [
    ["errors", "faults", "clock", "missing_names"],
    ["types"],
    ["config", "metrics"],
    ["functions"],
    ["keygroups"],
    ["graph", "storage"],
    ["state"],
    ["connectors", "codegen"],
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
    ["program"],
    ["batch"],
    ["state_processor", "queryable"],
    ["service"],
    ["cli"],
    ["common", "datastream", "dataset", "pyflink", "table"],
    ["testing"],
]
LINE_OF = {room: number for number, rooms in enumerate(LINES) for room in rooms}
MAY_IMPORT_PYSPARK = (Path("engine/spark"), Path("batch"), Path("state_processor/spark"))


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def test_every_room_has_its_line():
    rooms = {room_of(path) for path in source_files()} - {"__init__", "__main__"}
    assert rooms <= set(LINE_OF), f"rooms without a line: {sorted(rooms - set(LINE_OF))}"


def test_imports_go_up():
    wrong = []
    for path in source_files():
        room = room_of(path)
        if room in ("__init__", "__main__"):
            continue  # the package itself, which no room holds
        for each in imports_of(path):
            parts = each.module.split(".")
            if parts[0] != "ekorn" or len(parts) == 1 or parts[1] == room:
                continue
            if LINE_OF.get(parts[1], len(LINES)) >= LINE_OF[room]:
                wrong.append(f"{path.relative_to(SOURCE)}:{each.line} imports {each.module}, which is not above {room}")
    assert not wrong, "\n".join(wrong)


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
