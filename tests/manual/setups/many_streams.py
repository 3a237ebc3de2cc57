"""The client and the service that the page says are the reader's."""

import asyncio


class SomeAsyncClient:
    async def get(self, value):
        await asyncio.sleep(0)
        return len(value)


class model:
    @staticmethod
    async def predict(inputs):
        await asyncio.sleep(0)
        return [2 * value for value in inputs]
