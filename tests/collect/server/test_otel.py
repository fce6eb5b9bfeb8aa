"""The metrics by OpenTelemetry are those of the Prometheus text, and are sent only where it was asked for."""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deniable.cli import app
from deniable.collect.server.telemetry import HELP
from tests.collect.server.live import free_port
from tests.test_release import environment

ROOT = Path(__file__).parents[3]
PACKAGES = ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http")
PATIENCE = 120
DECODE = """if True:
    import json, sys
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    json.dump(MessageToDict(ExportMetricsServiceRequest.FromString(sys.stdin.buffer.read())), sys.stdout)
"""


def test_without_the_operator_s_port_there_is_nothing_to_push() -> None:
    done = CliRunner().invoke(app, ["serve", "--otel", "--store", "sqlite:///:memory:"])
    assert done.exit_code == 2
    assert "--otel pushes what --operator-port shows" in done.output


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    done = CliRunner().invoke(app, ["serve", "--otel", "--operator-port", "0", "--store", "sqlite:///:memory:"])
    assert done.exit_code == 2
    assert "deniable[otel]" in done.output


@pytest.mark.slow
@pytest.mark.parametrize("pin", ["==1.27.*", ""], ids=["oldest", "newest"])
def test_a_collector_receives_what_prometheus_reads(pin: str, tmp_path: Path) -> None:
    python = environment(tmp_path / "new", sys.executable, *(name + pin for name in PACKAGES))
    (packages,) = python.parent.parent.glob("lib/python*/site-packages")
    received: queue.Queue[tuple[str, bytes]] = queue.Queue()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.put((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    collector = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    operator = free_port()
    settings = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(packages)]),
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
        "OTEL_METRIC_EXPORT_INTERVAL": "300",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }
    words = ["serve", "--store", f"sqlite:///{tmp_path / 'x.db'}", "--port", "0"]
    command = [sys.executable, "-m", "deniable", *words, "--operator-port", str(operator), "--otel"]
    with subprocess.Popen(command, env=settings, stdout=subprocess.PIPE) as served:
        try:
            path, body = received.get(timeout=PATIENCE)
            with urllib.request.urlopen(f"http://127.0.0.1:{operator}/metrics", timeout=PATIENCE) as reply:
                text = reply.read().decode()
        finally:
            served.terminate()
    collector.shutdown()
    collector.server_close()
    assert (path, served.returncode) == ("/v1/metrics", 0)
    decoded = subprocess.run([sys.executable, "-c", DECODE], input=body, env=settings, capture_output=True, check=True)
    (resource,) = json.loads(decoded.stdout)["resourceMetrics"]
    named = {one["key"]: one["value"] for one in resource["resource"]["attributes"]}
    assert named["service.name"] == {"stringValue": "deniable"}
    metrics = {one["name"]: one for one in resource["scopeMetrics"][0]["metrics"]}
    # Counters without a count have no sample, in either form.
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    sampled = {re.sub(r"_(bucket|sum|count)$", "", name) for name in re.findall(r"^(\w+)", text, re.MULTILINE)}
    assert {name for name in sampled if name not in HELP and name != "deniable_request_seconds"} <= set(metrics)
    forms = {"gauge": "gauge", "counter": "sum", "histogram": "histogram"}
    assert all(forms[kinds[name]] in one for name, one in metrics.items())
    (commits,) = metrics["deniable_commit_seconds"]["histogram"]["dataPoints"]
    assert len(commits["bucketCounts"]) == len(commits["explicitBounds"]) + 1
    assert sum(map(int, commits["bucketCounts"])) == int(commits.get("count", 0))
    (up,) = metrics["deniable_up"]["gauge"]["dataPoints"]
    assert (up["asDouble"], up["attributes"]) == (1.0, [{"key": "worker", "value": {"stringValue": "0"}}])
