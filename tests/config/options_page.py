"""Writes docs/options.md from the declarations: `python -m tests.config.options_page`."""

from pathlib import Path
from types import ModuleType
from typing import Any

from ekorn.config.flink_options import ACCEPTED, REFUSED
from ekorn.config.option import ConfigOption
from ekorn.config.options import rocksdb as rocksdb_options
from ekorn.config.options.listing import MODULES, SERVICE_MODULES
from ekorn.config.value_text import value_text

PAGE = Path(__file__).resolve().parents[2] / "docs" / "options.md"
HEAD = """# Options

<!-- Written from src/ekorn/config/options by: python -m tests.config.options_page -->

Every key that Ekorn reads, with its default. [Configuration](guides/programs.md#configuration) says where keys are set
and which setting overrides which. Durations are written `500 ms`, `10 s`, `5 min`; sizes `64 kb`, `8 mb`, `1 gb`. Every
`spark.` key goes to Spark. [State backends](state_backends.md) has RocksDB's keys (`state.backend.rocksdb.`).
"""

WITHOUT_EFFECT = """## Options of Flink without effect

These options have no meaning here, and no result depends on them. A job that sets some is run, and one line of its log
names them. `src/ekorn/config/flink_options.py` has the table; if several names match an option, the longest counts.
"""
IS_REFUSED = """## Options of Flink that are refused

These options would change the job if Ekorn read them: its results, the cost of a failure, or who has access
to it. A job that sets one is refused, and so is a job with a misspelt key.
"""

# The pages that say how the options of a module are used.
EXPLAINED_ON = {
    "pipeline": "[Writing and running programs](guides/programs.md), [records that cannot be processed]"
    "(guides/troubleshooting.md#records-that-cannot-be-processed)",
    "epochs": "[Epochs](guides/performance.md#epochs), "
    "[running continuously](guides/performance.md#running-continuously)",
    "checkpoints": "[Checkpoints and savepoints](checkpoints_and_savepoints.md), "
    "[checkpoint storage](checkpoint_storage.md), [state backends](state_backends.md)",
    "recovery": "[Restart strategies](checkpoints_and_savepoints.md#restart-strategies), "
    "[iterations of DataSet programs](dataset.md#iterations)",
    "memory": "[Memory of a slot](operations.md#memory-of-a-slot)",
    "deployment": "[Deployment](guides/deployment.md), [security](guides/security.md)",
    "elasticity": "[Reactive mode](operations.md#reactive-mode), [autoscaler](operations.md#autoscaler)",
    "queryable_state": "[Queryable state](queryable_state.md)",
    "web": "[Dashboard](dashboard.md), [security](guides/security.md)",
    "metrics": "[Metrics](metrics.md), which also has the keys of reporters",
    "service": "[Running jobs](operations.md)",
}


def page() -> str:
    """Return the text of docs/options.md."""
    return HEAD + "".join(_section(module) for module in (*MODULES, *SERVICE_MODULES)) + _options_of_flink()


def _options_of_flink() -> str:
    accepted = _rows(ACCEPTED)
    refused = _rows({name: f"{why[0].upper()}{why[1:]}." for name, why in REFUSED.items()})
    return (
        f"\n{WITHOUT_EFFECT}\n| options | what takes their place |\n|---|---|\n{accepted}"
        f"\n{IS_REFUSED}\n| options | what to do |\n|---|---|\n{refused}"
    )


def _rows(rules: dict[str, str]) -> str:
    """Return one row for each reason, with the options that it holds for."""
    options: dict[str, list[str]] = {}
    for name, why in rules.items():
        options.setdefault(why, []).append(f"`{name}*`" if name.endswith(".") else f"`{name}`")
    return "".join(f"| {', '.join(names)} | {why} |\n" for why, names in options.items())


def _section(module: ModuleType) -> str:
    assert module.__doc__ is not None
    subject = module.__name__.rpartition(".")[2]
    title = subject.replace("_", " ").capitalize()
    about = f"{module.__doc__.strip()} See {EXPLAINED_ON[subject]}."
    options = [value for value in vars(module).values() if isinstance(value, ConfigOption)]
    rows = "".join(f"| `{each.key}` | {_default(each)} | {_meaning(each)} |\n" for each in options)
    return f"\n## {title}\n\n{about}\n\n| key | default | meaning |\n|---|---|---|\n{rows}"


def _default(option: ConfigOption[Any]) -> str:
    if option.default in (None, [], (), {}):
        return "not set"
    if option.unit == "ms":
        return _duration(option.default)
    return _size(option.default) if option.unit == "bytes" else f"`{value_text(option.default)}`"


def _duration(milliseconds: int) -> str:
    for unit, length in (("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if milliseconds and milliseconds % length == 0:
            return f"`{milliseconds // length} {unit}`"
    return f"`{milliseconds} ms`"


def _size(size_bytes: int) -> str:
    for unit, length in (("gb", 1 << 30), ("mb", 1 << 20), ("kb", 1 << 10)):
        if size_bytes and size_bytes % length == 0:
            return f"`{size_bytes // length} {unit}`"
    return f"`{size_bytes} bytes`"


def _meaning(option: ConfigOption[Any]) -> str:
    values = ", ".join(f"`{value}`" for value in option.values)
    old = ", ".join(f"`{key}`" for key in option.old_keys)
    sentences = [option.sentence, f"One of {values}." if values else "", f"Old spelling: {old}." if old else ""]
    return " ".join(filter(None, sentences))


if __name__ == "__main__":
    assert rocksdb_options.PREFIX in HEAD
    PAGE.write_text(page(), encoding="utf-8")
