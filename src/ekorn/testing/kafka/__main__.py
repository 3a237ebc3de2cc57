"""Runs a Kafka broker until Ctrl-C: `python -m ekorn.testing.kafka`."""

from __future__ import annotations

import argparse
import signal
import sys
from typing import NoReturn

from ekorn.errors import EkornError
from ekorn.testing.kafka.broker import kafka_broker
from ekorn.testing.kafka.jars import broker_version


def main(arguments: list[str] | None = None) -> int:
    """Run the broker; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m ekorn.testing.kafka", description=__doc__)
    parser.add_argument("--port", type=int, default=9092, help="where clients reach the broker (9092)")
    parser.add_argument("--folder", help="where its data stays; without it, the data is removed at the end")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)
    print(f"starting Kafka {broker_version()}; the first time, 43 MB are downloaded", flush=True)
    try:
        with kafka_broker(given.port, given.folder) as address:
            print(f"Kafka {broker_version()} listens on {address}; Ctrl-C ends it", flush=True)
            while True:
                signal.pause()
    except EkornError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Kafka has ended", flush=True)
        return 0


def _end(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
