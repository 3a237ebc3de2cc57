"""How long properties are searched for counterexamples: little in every run, long under `--hypothesis-profile=soak`."""

from hypothesis import HealthCheck, settings

_SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile("default", deadline=None, max_examples=40, suppress_health_check=_SLOW_IS_FINE)
settings.register_profile("soak", deadline=None, max_examples=2_000, suppress_health_check=_SLOW_IS_FINE)
settings.load_profile("default")
