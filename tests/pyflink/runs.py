"""The scripts beside this file with their arguments, and the recorded output of PyFlink.

    python tests/pyflink/runs.py [name ...]     with the Python of an environment that has apache-flink

records the output again: of the scripts here, and of those of PyFlink's own examples that need no other system and
end. The printed lines are compared as a multiset, since the order of two streams on one terminal is not defined. The
number of the subtask before a line depends on the number of cores and is removed.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RECORDED = HERE / "outputs.json"


@dataclass(frozen=True)
class Run:
    """One run of a script: `script` is a path from `scripts/`, or from PyFlink's `examples/datastream/`."""

    script: str
    arguments: tuple[str, ...] = ()
    of_pyflink: bool = False

    @property
    def name(self) -> str:
        return " ".join([("pyflink/" if self.of_pyflink else "") + self.script, *self.arguments])


OURS = [
    Run("word_count.py"),
    Run("balances.py"),
    Run("reminders.py"),
    Run("windows.py", ("--kind", "tumbling", "--kind", "sliding", "--kind", "session")),
    Run("windows.py", ("--kind", "dynamic", "--kind", "count")),
    Run("addresses.py"),
    Run("tags.py"),
    Run("beside.py", ("square", "circle", "triangle", "square")),
    Run("rates.py"),
    Run("rules.py"),
    Run("lookups.py"),
]
EXAMPLES = [
    Run(script, of_pyflink=True)
    for script in (
        "basic_operations.py",
        "event_time_timer.py",
        "process_json_data.py",
        "state_access.py",
        "word_count.py",
        "windowing/session_with_dynamic_gap_window.py",
        "windowing/session_with_gap_window.py",
        "windowing/sliding_time_window.py",
        "windowing/tumbling_count_window.py",
        "windowing/tumbling_time_window.py",
    )
]
# The rest of PyFlink's examples: test_kafka_examples.py runs those of Kafka, the others are refused with a reason.
OTHER_EXAMPLES = {
    "streaming_word_count.py": "its source is a table, and it never ends",
    "asyncio/remote_model_inference.py": "its source is a table, and it never ends",
    "connectors/elasticsearch.py": "Elasticsearch",
    "connectors/kafka_avro_format.py": "Kafka",
    "connectors/kafka_bytearray_format.py": "Kafka",
    "connectors/kafka_csv_format.py": "Kafka",
    "connectors/kafka_json_format.py": "Kafka",
    "connectors/kafka_row_field_extractor_example.py": "Kafka",
    "connectors/pulsar.py": "Pulsar",
}


# Some scripts send the log to standard output; these lines are PyFlink's.
LOG = re.compile(r"PYFLINK_CYTHON_ENABLED|No module named google\.cloud|Using Any for unsupported type")


def lines_of(printed: str) -> list[str]:
    """Return the printed lines that are compared: sorted, without subtask numbers and log lines."""
    return sorted(re.sub(r"^\d+> ", "", line) for line in printed.splitlines() if not LOG.match(line))


def recorded() -> dict[str, list[str]]:
    """Return the lines that PyFlink printed, sorted, by the name of the run."""
    return {name: found["printed"] for name, found in _recordings().items()}


def is_fresh(run: Run) -> bool:
    """Return whether a script of this folder is unchanged since it was recorded."""
    return _recordings()[run.name]["sha256"] == _sha256(HERE / "scripts" / run.script)


def _recordings() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def record(names: list[str]) -> None:
    import pyflink

    examples = Path(pyflink.__file__).parent / "examples" / "datastream"
    found = _recordings() if RECORDED.exists() else {}
    for run in [*OURS, *EXAMPLES]:
        if names and run.name not in names:
            continue
        folder = examples if run.of_pyflink else HERE / "scripts"
        done = subprocess.run(
            [sys.executable, str(folder / run.script), *run.arguments],
            # PyFlink starts its workers as `python`, and they do not search the folder of the script.
            env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode != 0:
            sys.exit(f"{run.name} failed:\n{done.stderr}")
        found[run.name] = {"sha256": _sha256(folder / run.script), "printed": lines_of(done.stdout)}
        text = json.dumps(dict(sorted(found.items())), indent=1, ensure_ascii=False)
        RECORDED.write_text(text + "\n", encoding="utf-8")
        print(run.name, flush=True)


if __name__ == "__main__":
    record(sys.argv[1:])
