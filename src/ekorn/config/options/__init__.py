"""Every configuration key that ekorn reads, declared once: key, old keys, type, default, unit, one sentence.

A field of a settings object names the option that fills it (`ekorn.config.settings.fields`).

`PARALLELISM.read(configuration)` returns a value of the right type or raises a `ConfigurationError` that names the
key. A `Configuration` keeps keys that are not declared here, and they have no effect. There are two exceptions: every
`spark.` key is handed to Spark, and RocksDB's keys are declared in `ekorn.config.options.rocksdb`. `listing.py` lists
all options; `python -m tests.config.options_page` writes the list to docs/options.md.

>>> from ekorn.config.configuration import Configuration
>>> AUTO_WATERMARK_INTERVAL.read(Configuration().set_string("pipeline.auto-watermark-interval", "1 s"))
1000
"""

# Callers write `options.PARALLELISM`, whichever module declares the option.
from ekorn.config.options.checkpoints import *  # noqa: F403
from ekorn.config.options.deployment import *  # noqa: F403
from ekorn.config.options.elasticity import *  # noqa: F403
from ekorn.config.options.epochs import *  # noqa: F403
from ekorn.config.options.memory import *  # noqa: F403
from ekorn.config.options.metrics import *  # noqa: F403
from ekorn.config.options.pipeline import *  # noqa: F403
from ekorn.config.options.queryable_state import *  # noqa: F403
from ekorn.config.options.recovery import *  # noqa: F403
from ekorn.config.options.web import *  # noqa: F403
