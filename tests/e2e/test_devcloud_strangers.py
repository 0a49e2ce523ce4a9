"""What the devcloud refuses: pages of other sites in a developer's browser, and apps at
addresses that are no app's.
"""

import asyncio
import json
import logging
import socket
from contextlib import suppress
from types import SimpleNamespace

import pytest

from edge.devcloud.http import guard
from edge.devcloud.http.guard import check_reach, is_off_limits
from tests.e2e.test_devcloud import a_cloud
from tests.unit.devcloud.parts import READ

pytestmark = pytest.mark.enable_socket
PATH = "/api/apps/com.x.new/tools"
APP = json.dumps({"tools": [READ], "publicUrl": "http://127.0.0.1:9"})
JSON = {"Content-Type": "application/json"}


@pytest.mark.requirement("CLOUD-strangers")
async def test_a_page_of_another_site_adds_no_tools(tmp_path):
    async with a_cloud(tmp_path) as cloud:
        port = cloud.facts["http"].rpartition(":")[2]
        answers = [
            (await cloud.http.post(PATH, content=APP, headers=headers)).status_code
            for headers in (
                {"Content-Type": "text/plain"},
                {"Content-Type": "application/x-www-form-urlencoded"},
                {},
                {**JSON, "Origin": "https://evil.example"},
                {**JSON, "Origin": "null"},
                {**JSON, "Origin": "http://localhost:1"},
                {**JSON, "Origin": "http://[::1"},
                {**JSON, "Host": "[::1"},
                {**JSON, "Host": "evil.example"},
                {**JSON, "Host": f"127.0.0.1.evil.example:{port}"},
            )
        ]
        assert answers == [415, 415, 415, 403, 403, 403, 403, 421, 421, 421]
        listed = await cloud.http.get("/api/registry", headers={"Host": "evil.example"})
        assert listed.status_code == 421
        told = await cloud.http.post(
            "/api/apps/com.x.new/key", headers={"Origin": "https://evil.example"}
        )
        assert (told.status_code, told.json()["error"]["code"]) == (403, "DENIED")


async def test_a_page_of_its_own_and_every_address_of_the_machine_are_served(tmp_path):
    async with a_cloud(tmp_path) as cloud:
        port = cloud.facts["http"].rpartition(":")[2]
        answers = [
            (
                await cloud.http.post(
                    PATH,
                    content=APP,
                    headers={"Content-Type": "application/json; charset=utf-8", **more},
                )
            ).status_code
            for more in (
                {},
                {"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}"},
                {"Host": "[::1]"},
                {"Host": "192.168.1.7:8787"},
                {"Host": socket.gethostname().upper()},
            )
        ]
        assert answers == [201, 200, 200, 200, 200]


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest",
        "http://2852039166",
        "http://0xa9fea9fe:80",
        "http://[fe80::1]:8001",
        "http://[::ffff:169.254.169.254]",
        "http://[fd00:ec2::254]",
        "http://100.100.100.200",
        "file:///etc/passwd",
        "gopher://127.0.0.1",
        "http://[::1",
    ],
)
@pytest.mark.requirement("CLOUD-app-address")
async def test_an_app_may_not_live_where_a_machine_asks_for_its_credentials(tmp_path, url):
    async with a_cloud(tmp_path) as cloud:
        answer = await cloud.post(PATH, {"tools": [READ], "publicUrl": url})
        assert answer.status_code == 400
        assert [m["field"] for m in answer.json()["error"]["fields"]] == ["publicUrl"]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "::1", "10.0.0.7", "192.168.1.1", "app.example", "fd12::1"]
)
def test_this_machine_and_private_networks_are_an_apps_to_use(host):
    assert not is_off_limits(host)


async def test_a_name_is_looked_at_when_its_app_is_called(monkeypatch):
    import httpx

    async def leads_to(*_, **__):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", 80))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", leads_to, raising=False)
    with pytest.raises(
        httpx.ConnectError, match=r"app\.example leads to a link-local or metadata address"
    ):
        await check_reach(httpx.Request("POST", "http://app.example/tool"))


async def test_a_name_that_is_not_looked_up_in_time_is_not_called(monkeypatch):
    """Its address was not seen, so it may be any."""
    import httpx

    async def never(*_, **__):
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", never, raising=False)
    monkeypatch.setattr(guard, "RESOLVE_S", 0.01)
    with pytest.raises(httpx.ConnectError, match=r"app\.example was not looked up within"):
        await check_reach(httpx.Request("POST", "http://app.example/tool"))


@pytest.mark.requirement("CLOUD-hang-up")
async def test_a_client_that_hangs_up_leaves_no_traceback(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    async with a_cloud(tmp_path) as cloud:
        host, _, port = cloud.facts["http"].removeprefix("http://").rpartition(":")
        for path in (PATH, "/devcloud/invoke", "/api/tools/execute"):
            _, writer = await asyncio.open_connection(host, int(port))
            head = (
                f"POST {path} HTTP/1.1\r\nHost: {host}\r\nX-User-Id: "
                "local\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n"
            )
            writer.write(head.encode() + b"{")
            await writer.drain()
            writer.transport.abort()
        assert (await cloud.status())["link"]["up"]
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


@pytest.mark.requirement("CLOUD-hang-up")
async def test_a_client_that_has_ended_its_side_gets_its_answer(tmp_path):
    async with a_cloud(tmp_path) as cloud:
        host, _, port = cloud.facts["http"].removeprefix("http://").rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = (
            f"POST {PATH} HTTP/1.1\r\nHost: {host}\r\nContent-Type: "
            f"application/json\r\nContent-Length: {len(APP)}\r\n\r\n"
        )
        writer.write(head.encode() + APP.encode())
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
    assert answer.startswith(b"HTTP/1.1 201")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["tools"] == ["read"]


@pytest.mark.parametrize(("scheme", "kept"), [("http", True), ("https", False)])
def test_tls_has_no_side_that_ends_alone(scheme, kept):
    """asyncio closes a TLS connection in any case, and warns when it was asked to keep it."""
    running = SimpleNamespace(more_body=False, response_complete=False)
    kind = guard.connection()
    connection = kind.__new__(kind)
    connection.scheme, connection.cycle = scheme, running
    assert connection.eof_received() is kept
