"""The environment variables that ekorn reads as settings, each declared once.

Variables that one ekorn process sets for another (`EKORN_READY_FD`) or that inject faults into tests
(`ekorn.faults`) are not settings and are not listed here.
"""

from __future__ import annotations

import os

CONF_DIR = "EKORN_CONF_DIR"
"""The folder with the configuration file, `config.yaml` or `flink-conf.yaml`."""
RUNTIME_DIR = "EKORN_RUNTIME_DIR"
"""The folder in which `ekorn list` finds the running jobs of this user."""
SESSION_DIR = "XDG_RUNTIME_DIR"
"""The session folder of the operating system: `ekorn` below it is the default of `RUNTIME_DIR`."""
STATE_DIR = "XDG_STATE_HOME"
"""The folder of the user for what programs keep: `ekorn` below it is the folder of the service, unless it is set."""
SERVICE_ADDRESS = "EKORN_SERVICE_ADDRESS"
"""The address of the service that commands of the command line go to, such as `https://host:8081`."""
SERVICE_TOKEN_FILE = "EKORN_SERVICE_TOKEN_FILE"
"""The file with the token of that service."""
SERVICE_CERTIFICATE_FILE = "EKORN_SERVICE_CERTIFICATE_FILE"
"""The file with the certificate of that service, or of the authority that signed it, if the system does not know it."""
SPARK_MASTER = "SPARK_MASTER"
"""The address of the Spark cluster, when the configuration has no `spark.master`."""


def variable(name: str) -> str | None:
    """Return the value of an environment variable, or None if it is unset or empty."""
    return os.environ.get(name) or None
