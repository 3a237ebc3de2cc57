"""Scoring with a model in every slot: the model is a file that Ekorn brings to the slots, loaded once by each subtask.

    python examples/scoring.py

The model, here the weights of a logistic regression, is registered as a cached file. `open` loads it, so a prediction
is a call in the same process: no request, no copy per record. A new version of the model is a new file and a restart
from a savepoint; for models that change by the hour, send them as broadcast records (`examples/rule_alerts.py`).
"""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path

from ekorn.datastream import MapFunction, StreamExecutionEnvironment

CUSTOMERS = 400
MODEL = {"bias": -3.0, "weights": {"visits": 0.35, "basket": 0.02, "days_away": -0.08}}


def customer(number: int) -> dict[str, float]:
    """Return the features of a customer."""
    return {
        "id": number,
        "visits": number * 13 % 17,
        "basket": number * 31 % 120,
        "days_away": number * 7 % 30,
    }


class Score(MapFunction):
    """Predicts how likely a customer is to buy."""

    def open(self, runtime_context):
        file = runtime_context.get_distributed_cache().get_file("model.json")
        self.model = json.loads(Path(file).read_text())
        runtime_context.get_metrics_group().counter("models loaded").inc()
        self.scores = runtime_context.get_metrics_group().distribution("scores")

    def map(self, value):
        weights = self.model["weights"]
        logit = self.model["bias"] + sum(weight * value[name] for name, weight in weights.items())
        score = round(1 / (1 + math.exp(-logit)), 3)
        self.scores.update(score)
        return int(value["id"]), score


def scored(parallelism: int = 2) -> tuple[list[tuple[int, float]], int]:
    """Run the job; return the score of each customer, and how many times the model was loaded."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.json")
        file.write_text(json.dumps(MODEL))
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(parallelism)
        env.register_cached_file(str(file), "model.json")
        customers = env.from_collection([customer(number) for number in range(CUSTOMERS)]).rebalance()
        with customers.map(Score()).name("score").execute_and_collect("scoring") as results:
            found = sorted(results)
            loaded = results.job_client.get_metrics()["score.models loaded"]
    return found, loaded


def main() -> None:
    """Draw how many customers have which score."""
    found, loaded = scored()
    for tenth in range(10):
        count = sum(tenth / 10 <= score < (tenth + 1) / 10 for _, score in found)
        print(f"{tenth / 10:.1f} to {(tenth + 1) / 10:.1f} {count:>4}  {'#' * (count // 2)}")
    print(f"{len(found)} predictions, the model was loaded {loaded} times")


if __name__ == "__main__":
    main()
