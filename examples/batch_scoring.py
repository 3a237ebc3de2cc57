"""Scoring a model by the batch: one call of the model for all customers of a batch, instead of a call for each.

    python examples/batch_scoring.py

The model is a small network of NumPy matrices, loaded once by each subtask. `map_batch` gets the features of some
thousand customers as arrays, so a prediction is a row of a matrix product. The same class would hold a model of
scikit-learn, ONNX or PyTorch: they are made for many rows at a time.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ekorn.common import Types, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.columns import BatchFunction, ColumnGeneratorSource, ColumnStream

if TYPE_CHECKING:
    import numpy
    import pyarrow

CUSTOMERS = 20_000
FEATURES = ("visits", "basket", "days_away")
CUSTOMER = Types.ROW_NAMED(["id", *FEATURES], [Types.LONG(), Types.DOUBLE(), Types.DOUBLE(), Types.DOUBLE()])
SCORED = Types.ROW_NAMED(["id", "score"], [Types.LONG(), Types.DOUBLE()])


def customers(first: int, count: int) -> pyarrow.RecordBatch:
    """Return the features of the customers with some numbers, each between 0 and 1."""
    import numpy as np
    import pyarrow as pa

    number = np.arange(first, first + count)
    features = {"visits": number * 13 % 17 / 17, "basket": number * 31 % 120 / 120, "days_away": number * 7 % 30 / 30}
    return pa.record_batch({"id": number, **features})


def write_model(path: Path) -> None:
    """Write the matrices of a network with eight hidden units, as a training would."""
    import numpy as np

    chance = np.random.default_rng(24)
    np.savez(path, hidden=chance.normal(size=(len(FEATURES), 8)), output=2 * chance.normal(size=8))


def predict(model: Any, features: numpy.ndarray) -> numpy.ndarray:
    """Return how likely each customer is to buy, from a matrix with a row for each."""
    import numpy as np

    logits = np.tanh(features @ model["hidden"]) @ model["output"]
    scores: numpy.ndarray = 1 / (1 + np.exp(-logits))
    return scores


class Score(BatchFunction):
    """Predicts how likely customers are to buy."""

    def open(self, runtime_context):
        import numpy as np

        self.model = dict(np.load(runtime_context.get_distributed_cache().get_file("model.npz")))
        group = runtime_context.get_metrics_group()
        group.counter("models loaded").inc()
        self.calls = group.counter("calls")

    def map_batch(self, batch):
        import numpy as np

        self.calls.inc()
        features = np.column_stack([batch[name] for name in FEATURES])
        return {"id": batch["id"], "score": predict(self.model, features)}


def scored(parallelism: int = 2) -> tuple[dict[int, float], int, int]:
    """Run the job; return the score of each customer, and how many times the model was loaded and called."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.npz")
        write_model(file)
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(parallelism)
        env.register_cached_file(str(file), "model.npz")
        source = ColumnGeneratorSource(customers, CUSTOMERS, CUSTOMER)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "customers")
        assert isinstance(stream, ColumnStream)
        scores = stream.map_batches(Score(), SCORED, library="numpy").name("score")
        with scores.execute_and_collect("batch scoring") as results:
            found = {row["id"]: row["score"] for row in results}
            metrics = results.job_client.get_metrics()
    return found, metrics["score.models loaded"], metrics["score.calls"]


def main() -> None:
    """Draw how many customers have which score."""
    found, loaded, calls = scored()
    for tenth in range(10):
        count = sum(tenth / 10 <= score < (tenth + 1) / 10 for score in found.values())
        print(f"{tenth / 10:.1f} to {(tenth + 1) / 10:.1f} {count:>6}  {'#' * (count // 150)}")
    print(f"{len(found)} predictions by {calls} calls; the model was loaded {loaded} times")


if __name__ == "__main__":
    main()
