"""The heap backend always has the state of a plain dictionary, whatever happens to the job."""

from tests.state.backends import BACKENDS
from tests.state.keyed_machine import KeyedBackendMachine


def machine(name):
    return type(f"Machine of {name}", (KeyedBackendMachine,), {"backends": (BACKENDS[name],)})


TestHeap = machine("heap").TestCase
TestHeapWithWholeSnapshots = machine("heap, whole snapshots").TestCase
