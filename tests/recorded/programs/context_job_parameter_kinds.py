"""Job parameters are strings."""

from pyflink.datastream.functions import MapFunction, RuntimeContext

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Facts(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.facts = [runtime_context.get_job_parameter(name, "absent") for name in ("number", "flag", "none", "empty")]

    def map(self, value):
        return self.facts


def build(env):
    env.get_config().set_global_job_parameters({"number": "1", "flag": "true", "empty": ""})
    return env.from_collection([1]).map(Facts())
