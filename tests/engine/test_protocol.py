"""Every engine offers what the job loop expects of an engine."""

import pytest

from ekorn.engine.protocol import Engine
from ekorn.engine.slots.continuous_engine import ContinuousSlotEngine
from ekorn.engine.slots.epoch_engine import EpochSlotEngine
from ekorn.testing.continuous_local_engine import ContinuousLocalEngine
from ekorn.testing.local_engine import LocalEngine
from ekorn.testing.scripted import ScriptedEngine


@pytest.mark.parametrize(
    "engine",
    [
        LocalEngine,
        ScriptedEngine,
        EpochSlotEngine,
        ContinuousLocalEngine,
        ContinuousSlotEngine,
    ],
)
def test_an_engine_implements_the_whole_protocol(engine):
    wanted = {name for name in vars(Engine) if not name.startswith("_")}
    assert {"deploy", "run_epoch", "slot_pids", "keep_log", "in_process"} <= wanted
    assert wanted <= set(dir(engine))
    assert not getattr(engine, "__abstractmethods__", frozenset())
