import json

from tests.coverage_by_room import by_room


def test_statements_are_counted_by_room_and_files_of_tests_are_left_out(tmp_path):
    counts = {
        "src/ekorn/state/ttl.py": (3, 4),
        "src/ekorn/state/heap/heap_backend.py": (1, 6),
        "src/ekorn/clock.py": (5, 5),
        "/tmp/pytest-of-ada/pytest-0/test_a_module0/extra.py": (1, 2),
    }
    files = {name: {"summary": {"covered_lines": c, "num_statements": n}} for name, (c, n) in counts.items()}
    report = tmp_path / "coverage.json"
    report.write_text(json.dumps({"files": files}))
    assert by_room(report) == {"state": (4, 10), "clock": (5, 5)}
