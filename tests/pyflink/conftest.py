"""A process that is as it was before, after a script was run in it."""

import logging
import sys

import pytest

from ekorn.program.pyflink_alias import uninstall
from tests.servers.kafka.broker import kafka
from tests.servers.pyflink_examples import pyflink_examples

__all__ = ["kafka", "pyflink_examples"]


@pytest.fixture
def aliased(monkeypatch):
    """Undo the changes that `install()` and `run_script()` make to the process."""
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.setattr(logging.getLogger("py4j"), "level", logging.NOTSET)
    main, before = sys.modules["__main__"], set(sys.modules)
    yield
    uninstall()
    sys.modules["__main__"] = main
    for name in set(sys.modules) - before:
        if not name.startswith("ekorn"):
            del sys.modules[name]
