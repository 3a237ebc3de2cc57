"""Every engine offers what the job loop expects of an engine of its mode."""

import pytest

from ekorn.engine.protocol import ContinuousEngine, Engine, EpochEngine
from ekorn.engine.slots.continuous_engine import ContinuousSlotEngine
from ekorn.engine.slots.epoch_engine import EpochSlotEngine
from ekorn.testing.continuous_local_engine import ContinuousLocalEngine
from ekorn.testing.local_engine import LocalEngine
from ekorn.testing.scripted import ContinuousScriptedEngine, ScriptedEngine

OF_ALL = {"deploy", "slot_pids", "keep_log", "in_process"}
OF_CONTINUOUS = {"mark_interval_ms", "set_aside", "run_others"}


def offered(protocol: type) -> set[str]:
    """Return the names that a protocol has, with those of the protocol that it extends."""
    return {name for each in (Engine, protocol) for name in vars(each) if not name.startswith("_")}


@pytest.mark.parametrize("engine", [LocalEngine, ScriptedEngine, EpochSlotEngine])
def test_an_engine_of_epochs_implements_the_whole_protocol(engine):
    wanted = offered(EpochEngine)
    assert OF_ALL | {"execution", "run_epoch"} <= wanted
    assert wanted <= set(dir(engine))
    assert not OF_CONTINUOUS & set(dir(engine)), "what only the other mode needs is not offered"
    assert not getattr(engine, "__abstractmethods__", frozenset())


@pytest.mark.parametrize("engine", [ContinuousLocalEngine, ContinuousScriptedEngine, ContinuousSlotEngine])
def test_a_continuous_engine_implements_the_whole_protocol(engine):
    wanted = offered(ContinuousEngine)
    assert OF_ALL | OF_CONTINUOUS | {"execution", "run_epoch"} <= wanted
    assert wanted <= set(dir(engine))
    assert not getattr(engine, "__abstractmethods__", frozenset())
