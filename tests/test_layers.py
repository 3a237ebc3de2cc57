"""Who imports whom: the rooms and their order, as drawn in the style guide."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "tamias"

# A room may import rooms on lines above its own, never below, nor beside it.
LINES = [
    ["errors", "faults", "clock"],
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
    ["slot"],
    ["engine"],
    ["driver"],
    ["program"],
    ["batch"],
    ["state_processor", "queryable"],
    ["service"],
    ["cli"],
    ["common", "datastream", "dataset", "pyflink"],
    ["testing"],
]
LINE_OF = {room: number for number, rooms in enumerate(LINES) for room in rooms}
MAY_IMPORT_PYSPARK = (Path("engine/spark"), Path("batch"))

FILES = sorted(SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_modules(path: Path) -> list[tuple[int, str]]:
    """Every module a file imports, wherever the import stands, with its line."""
    package = ["tamias", *path.relative_to(SOURCE).parent.parts]
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            found.append((node.lineno, ".".join([*base, *([node.module] if node.module else [])])))
        elif isinstance(node, ast.ImportFrom) and node.module == "tamias":
            found += [(node.lineno, f"tamias.{alias.name}") for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append((node.lineno, node.module))
    return found


def test_every_room_has_its_line():
    rooms = {room_of(path) for path in FILES} - {"__init__", "__main__"}
    assert rooms <= set(LINE_OF), f"rooms without a line: {sorted(rooms - set(LINE_OF))}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_up(path):
    room = room_of(path)
    if room in ("__init__", "__main__"):
        pytest.skip("the package itself")
    wrong = []
    for line, module in imported_modules(path):
        parts = module.split(".")
        if parts[0] != "tamias" or len(parts) == 1 or parts[1] == room:
            continue
        if LINE_OF.get(parts[1], len(LINES)) >= LINE_OF[room]:
            wrong.append(f"{path.relative_to(SOURCE)}:{line} imports {module}, which is not above {room}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_the_spark_engine_and_the_batch_api_know_of_spark(path):
    below = path.relative_to(SOURCE)
    if any(folder in below.parents for folder in MAY_IMPORT_PYSPARK):
        return
    wrong = [line for line, module in imported_modules(path) if module.split(".")[0] in ("pyspark", "py4j")]
    assert not wrong, f"{below} imports Spark in lines {wrong}"


def test_the_streaming_api_is_imported_without_spark():
    program = "import sys; sys.modules['pyspark'] = None; import tamias.datastream, tamias.common"
    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONPATH": str(SOURCE.parent)})
