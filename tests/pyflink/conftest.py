"""A process that is as it was, after a script was run in it."""

import logging
import sys

import pytest

from tamias.slot import deployment_codec as deployment


@pytest.fixture
def aliased(monkeypatch):
    """What `install()` and `run_script()` change is undone afterwards."""
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(deployment, "_prepared_by", [])
    monkeypatch.setattr(logging.getLogger("py4j"), "level", logging.NOTSET)
    main, before = sys.modules["__main__"], set(sys.modules)
    yield
    sys.modules["__main__"] = main
    for name in set(sys.modules) - before:
        if not name.startswith("tamias"):
            del sys.modules[name]
