"""Services for tests of asynchronous I/O: outside the job, as real ones are, with a record of their use."""

import asyncio
import itertools
import threading

from ekorn.datastream import AsyncBatchFunction, AsyncFunction

SERVICES = {}
_numbers = itertools.count()


class Service:
    """Answers after some milliseconds, or once its gate is open for the value."""

    def __init__(self, latency_ms=lambda value: 0, answer=lambda value: [value], gate=None):
        self.name = f"service-{next(_numbers)}"
        self.latency_ms = latency_ms
        self.answer = answer
        self.gate = gate
        self.allowed = set()
        self.asked = []
        self.answered = []
        self.cancelled = []
        self.timed_out = []
        self.now = self.most = 0
        self.lock = threading.Lock()
        SERVICES[self.name] = self

    def allow(self, *values):
        self.allowed |= set(values)

    async def ask(self, value):
        with self.lock:
            self.asked.append(value)
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self.latency_ms(value) / 1000)
            while self.gate is not None and not self.gate(self, value):
                await asyncio.sleep(0.0005)
        except asyncio.CancelledError:
            self.cancelled.append(value)
            raise
        finally:
            with self.lock:
                self.now -= 1
        answer = self.answer(value)
        self.answered.append(value)
        return answer


def allowed(service, value):
    """A gate that is open for the values that the service allows."""
    return value in service.allowed


class Ask(AsyncFunction):
    """Makes one request to a service per record."""

    def __init__(self, service):
        self.service_name = service.name

    @property
    def service(self):
        return SERVICES[self.service_name]

    async def async_invoke(self, value):
        return await self.service.ask(value)


class AskOrMakeDo(Ask):
    def timeout(self, value):
        self.service.timed_out.append(value)
        return [("no answer", value)]


class AskMany(AsyncBatchFunction):
    """Makes one request per batch of records; the service gets the batch as a tuple."""

    def __init__(self, service):
        self.service_name = service.name

    @property
    def service(self):
        return SERVICES[self.service_name]

    async def async_invoke_batch(self, inputs):
        return await self.service.ask(tuple(inputs))
