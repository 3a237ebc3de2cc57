"""A store that fails or is slow where a test says so, by operation, file name and count."""

import fnmatch
from dataclasses import dataclass, field


@dataclass
class Fault:
    """A fault of the calls whose operation and path match: skips the first `skip` calls, then happens `times` times."""

    operation: str
    pattern: str
    times: int = 1
    skip: int = 0
    error: BaseException | None = field(default_factory=lambda: OSError(5, "injected"))
    delay_ms: int = 0
    after: bool = False  # fail after the operation took effect, as a lost answer does


class FaultyFiles:
    """Wraps a store. Delays go to `on_delay` (a manual clock's advance), so no test waits.

    `on_call` is called before every operation, also of the stores below this one.
    """

    def __init__(self, store, *faults, on_delay=lambda ms: None, on_call=lambda: None):
        self._store = store
        self._faults = list(faults)
        self._on_delay = on_delay
        self._on_call = on_call
        self.calls = []

    def add(self, *faults):
        self._faults += faults

    @property
    def url(self):
        return self._store.url

    @property
    def exclusive(self):
        return self._store.exclusive

    def below(self, path):
        below = FaultyFiles(self._store.below(path), on_delay=self._on_delay, on_call=self._on_call)
        below._faults, below.calls = self._faults, self.calls
        return below

    def __getattr__(self, operation):
        inner = getattr(self._store, operation)

        def call(path="", *rest):
            self._on_call()
            self.calls.append((operation, path))
            fault = self._due(operation, path)
            if fault is None:
                return inner(path, *rest)
            self._on_delay(fault.delay_ms)
            if fault.error is not None and not fault.after:
                raise fault.error
            result = inner(path, *rest)
            if fault.error is not None:
                raise fault.error
            return result

        return call

    def _due(self, operation, path):
        for fault in self._faults:
            if fault.operation == operation and fnmatch.fnmatch(path, fault.pattern) and fault.times > 0:
                if fault.skip > 0:
                    fault.skip -= 1
                    continue
                fault.times -= 1
                return fault
        return None
