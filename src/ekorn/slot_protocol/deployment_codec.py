"""Encodes a deployment for its way to the slots: pickled with the user's code and the classes of the main program."""

from __future__ import annotations

import pickle
import sys
import types
from collections.abc import Callable
from typing import Any

import cloudpickle

from ekorn.errors import DeploymentError
from ekorn.slot_protocol.deployment import Deployment

_prepared_by: list[Callable[[], None]] = []


def call_in_slots(function: Callable[[], None]) -> None:
    """Register a function that every slot of this process's jobs calls before it unpickles user code.

    The function is pickled by name, so the slots must be able to import it.
    """
    _prepared_by.append(function)


def do_not_call_in_slots(function: Callable[[], None]) -> None:
    """Take back a registration of `call_in_slots`, for jobs that are submitted from now on."""
    _prepared_by.remove(function)


def encode_deployment(deployment: Deployment) -> bytes:
    """Pickle a deployment with the user's code, and beside it the classes of the main program.

    A class of `__main__` travels by value inside the user's functions. When a slot pickles records and state, it must
    also find the class by its name: so the slots get the classes under their names as well.

    Raises:
        DeploymentError: Something in the job cannot be pickled.
    """
    try:
        program = bytes(cloudpickle.dumps((deployment, _main_classes()), pickle.HIGHEST_PROTOCOL))
    except Exception as error:
        raise DeploymentError(f"the job cannot be sent to its slots: {type(error).__name__}: {error}") from error
    return pickle.dumps((_prepared_by, program))


def decode_deployment(data: bytes) -> Deployment:
    """Unpickle a deployment, and put the main program's classes where instances of them are pickled by name."""
    deployment: Deployment = _decode(data)
    return deployment


def encode_classes() -> bytes:
    """Pickle the classes of the main program alone, for a slot that is to read state before its first deployment."""
    return pickle.dumps((_prepared_by, bytes(cloudpickle.dumps((None, _main_classes()), pickle.HIGHEST_PROTOCOL))))


def decode_classes(data: bytes) -> None:
    """Put the main program's classes where a deployment will: it finds the same classes then, not copies of them."""
    _decode(data)


def _main_classes() -> dict[str, Any]:
    main = sys.modules.get("__main__")
    classes: dict[str, Any] = {}
    for name, value in vars(main).items() if isinstance(main, types.ModuleType) else ():
        if isinstance(value, type) and value.__module__ == "__main__":
            try:
                cloudpickle.dumps(value)
            except Exception:  # the class cannot be pickled, so no record can be an instance of it
                continue
            classes[name] = value
    return classes


def _decode(data: bytes) -> Any:
    prepared_by, program = pickle.loads(data)
    for prepare in prepared_by:
        prepare()
    decoded, main_classes = pickle.loads(program)
    main = sys.modules["__main__"]
    for name, cls in main_classes.items():
        setattr(main, name, cls)
    return decoded
