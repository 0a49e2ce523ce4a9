"""`GET /v1/metrics` on a real socket: the text under its own type, or how to get it."""

import sys

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from edge.control.routes import OPENMETRICS
from edge.observability.metrics import Gauges, Metrics
from tests.unit.control.house import open_house

pytestmark = pytest.mark.enable_socket
CALL = {
    "toolId": 'say:"hi"\n👓',
    "version": "1",
    "route": "local",
    "outcome": "answered",
    "ok": True,
    "duration": 7,
}
GET = b"GET /v1/metrics HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.requirement("S2-132")
async def test_the_counts_are_openmetrics_text_under_its_own_type(tmp_path):
    metrics = Metrics(lambda: Gauges(outbox=3))
    metrics.observe(CALL)
    async with open_house(tmp_path, metrics=metrics.openmetrics) as house:
        raw = await house.exchange(GET + b"Connection: close\r\n\r\n")
    head, _, body = raw.decode().partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200 ")
    assert f"content-type: {OPENMETRICS}" in head.lower()
    assert body.endswith("\n# EOF\n")
    found = {s.name: s for family in text_string_to_metric_families(body) for s in family.samples}
    assert found["glassd_tool_calls_total"].labels == {"tool": CALL["toolId"]}
    assert found["glassd_outbox_depth"].value == 3


async def test_the_connection_carries_the_next_request(tmp_path):
    async with open_house(tmp_path, metrics=Metrics().openmetrics) as house:
        raw = await house.exchange(GET + b"\r\nGET /v1/lens HTTP/1.1\r\nHost: x\r\n\r\n")
    assert raw.count(b"HTTP/1.1 200 ") == 2
    assert b"application/json" in raw.partition(b"# EOF\n")[2]


async def test_without_the_library_the_error_tells_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    async with open_house(tmp_path, metrics=Metrics().openmetrics) as house:
        status, answer = await house.ask("GET", "/v1/metrics")
    assert (status, answer["error"]["code"]) == (501, "UNSUPPORTED")
    assert "prometheus-client" in answer["error"]["message"]
    assert "pip install 'glassd[metrics]'" in answer["error"]["fix"]


async def test_a_daemon_without_metrics_reports_that(tmp_path):
    async with open_house(tmp_path) as house:
        status, answer = await house.ask("GET", "/v1/metrics")
    assert (status, answer["error"]["code"]) == (501, "UNSUPPORTED")
    assert answer["error"]["fix"]


async def test_the_counts_can_only_be_read(tmp_path):
    async with open_house(tmp_path, metrics=Metrics().openmetrics) as house:
        status, answer = await house.ask("POST", "/v1/metrics")
    assert (status, answer["error"]["code"]) == (405, "METHOD_NOT_ALLOWED")
