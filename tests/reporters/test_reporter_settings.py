"""The keys of metric reporters."""

import pytest

from ekorn.common import Configuration
from ekorn.config.settings.metric_settings import ReporterSettings, reporter_settings
from ekorn.errors import ConfigurationError

PROMETHEUS = "org.apache.flink.metrics.prometheus.PrometheusReporterFactory"
PUSH = "org.apache.flink.metrics.prometheus.PrometheusPushGatewayReporterFactory"
LOG = "org.apache.flink.metrics.slf4j.Slf4jReporterFactory"


def read(**keys):
    given = {f"metrics.reporter.{key}": value for key, value in keys.items()}
    return reporter_settings(Configuration.from_dict(given))


def test_reporters_are_read_under_flinks_keys():
    found = read(
        **{
            "prom.factory.class": PROMETHEUS,
            "prom.port": "9250-9252, 9300",
            "log.factory.class": LOG,
            "log.interval": "5 s",
            "push.factory.class": PUSH,
            "push.hostUrl": "http://localhost:9091",
            "push.deleteOnShutdown": "false",
            "push.groupingKey": "host=a;zone=b",
        }
    )
    assert found == (
        ReporterSettings("log", "log", 5000),
        ReporterSettings("prom", "prometheus", 10_000, {"port": (9250, 9251, 9252, 9300)}),
        ReporterSettings(
            "push",
            "push-gateway",
            10_000,
            {"hostUrl": "http://localhost:9091", "deleteOnShutdown": False, "groupingKey": {"host": "a", "zone": "b"}},
        ),
    )


def test_only_the_named_reporters_run():
    keys = {"metrics.reporter.a.factory.class": LOG, "metrics.reporter.b.factory.class": LOG, "metrics.reporters": "b"}
    assert [each.name for each in reporter_settings(Configuration.from_dict(keys))] == ["b"]


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"prom.port": "9250"}, r"metrics\.reporter\.prom\.factory\.class is not set; there are org\.apache"),
        ({"x.factory.class": "com.example.Own"}, r"x\.factory\.class is 'com\.example\.Own'; there are"),
        ({"prom.factory.class": PROMETHEUS, "prom.prt": "1"}, r"prom\.prt is refused.*did you mean 'port'\?"),
        ({"prom.factory.class": PROMETHEUS, "prom.port": "99999"}, r"cannot read the value '99999' of .*prom\.port"),
        ({"prom.factory.class": PROMETHEUS, "prom.port": "a-b"}, "a range such as 9250-9260"),
        ({"prom.factory.class": PROMETHEUS, "prom.interval": "1 ms"}, "must be at least 100 ms"),
        ({"push.factory.class": PUSH}, r"reporter 'push' needs metrics\.reporter\.push\.hostUrl"),
        (
            {"push.factory.class": PUSH, "push.hostUrl": "localhost:9091"},
            r"push\.hostUrl is not the address of a server",
        ),
        (
            {"push.factory.class": PUSH, "push.hostUrl": "http://u", "push.groupingKey": "a"},
            "pairs such as host=a;zone=b",
        ),
        ({"prom": PROMETHEUS}, r"write metrics\.reporter\.<name>\.<key>"),
    ],
)
def test_a_mistake_is_named(keys, says):
    with pytest.raises(ConfigurationError, match=says):
        read(**keys)


def test_an_address_with_a_password_is_refused_and_not_shown():
    with pytest.raises(ConfigurationError, match=r"push\.hostUrl holds a user or a password") as refused:
        read(**{"push.factory.class": PUSH, "push.hostUrl": "http://ada:secret@localhost:9091"})
    assert "secret" not in str(refused.value)


def test_a_reporter_that_is_not_declared_is_refused():
    with pytest.raises(ConfigurationError, match=r"metrics\.reporters names 'prom': set metrics\.reporter\.prom\.fact"):
        reporter_settings(Configuration.from_dict({"metrics.reporters": "prom"}))
