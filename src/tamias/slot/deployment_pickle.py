"""A deployment on its way to the slots: pickled with the user's code, and with the classes of the main program."""

from __future__ import annotations

import pickle
import sys
import types
from collections.abc import Callable
from typing import Any

import cloudpickle

from tamias.errors import DeploymentError
from tamias.slot.deployment import Deployment

_prepared_by: list[Callable[[], None]] = []


def call_in_slots(function: Callable[[], None]) -> None:
    """Have every slot of this process's jobs call a function, found there by its name, before it meets user code."""
    _prepared_by.append(function)


def dump_deployment(deployment: Deployment) -> bytes:
    """Pickle a deployment with the user's code, and beside it the classes of the main program.

    A class of `__main__` travels by value inside the user's functions, but its instances must be found by name
    when records and state are pickled in a slot: so the slots get the classes under their names as well.
    """
    main = sys.modules.get("__main__")
    classes: dict[str, Any] = {}
    for name, value in vars(main).items() if isinstance(main, types.ModuleType) else ():
        if isinstance(value, type) and value.__module__ == "__main__":
            try:
                cloudpickle.dumps(value)
            except Exception:  # refers to something that cannot travel: then no record can be one
                continue
            classes[name] = value
    try:
        program = bytes(cloudpickle.dumps((deployment, classes), pickle.HIGHEST_PROTOCOL))
    except Exception as error:
        raise DeploymentError(f"the job cannot be sent to its slots: {type(error).__name__}: {error}") from error
    return pickle.dumps((_prepared_by, program))


def load_deployment(data: bytes) -> Deployment:
    """Unpickle a deployment, and let instances of the main program's classes be pickled by name from now on."""
    prepared_by, program = pickle.loads(data)
    for prepare in prepared_by:
        prepare()
    deployment, main_classes = pickle.loads(program)
    main = sys.modules["__main__"]
    for name, cls in main_classes.items():
        setattr(main, name, cls)
    loaded: Deployment = deployment
    return loaded
