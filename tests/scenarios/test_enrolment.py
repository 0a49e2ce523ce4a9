"""The user story: "I paste the code my cloud's operator sent, and it works; nobody in between
can listen, and so it stays".
"""

import asyncio
import json
import os
import ssl
import stat
import sys
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from msgspec.structs import replace

from edge.cloud.enrolment import keys
from edge.control.client import ControlClient
from edge.core.enrolment_code import decode, encode
from edge.devcloud.enrolment.codes import qr
from edge.devcloud.http import guard
from edge.devcloud.main import WorkerLimits
from edge.runtime.errors import UserError
from edge.runtime.paths import owner_beside
from tests.e2e.broker import serving
from tests.e2e.certificates import Authority, keys_made_here
from tests.scenarios.world import World, all_apps, until, world
from tests.system import needs

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.enable_socket,
    pytest.mark.mosquitto,
    needs("mosquitto"),
]

CHILD = keys._child
CALC = "com.example.calc:evaluate"


@pytest.fixture(autouse=True)
def quick_keys(monkeypatch):
    monkeypatch.setattr(keys, "_child", keys_made_here)


@pytest.fixture
def real_keys(quick_keys, monkeypatch):
    """Made by a child process, as in real life."""
    monkeypatch.setattr(keys, "_child", CHILD)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def secure(tmp_path_factory):
    """A cloud with TLS, for all stories of this file."""
    async with world(tmp_path_factory.mktemp("secure")) as place:
        yield await place.start_cloud(
            tls="localhost", apps=all_apps(), limits=WorkerLimits(code_life_s=600.0)
        )


@asynccontextmanager
async def edge_of(folder, cloud, **sections):
    """A daemon whose configuration says nothing of that cloud."""
    async with world(folder) as place:
        await place.start_daemon(**sections)
        place.cloud = cloud
        yield place


async def ask(place: World, method: str, path: str, body=None):
    """Ask the daemon as the CLI does: over its socket, from a thread."""
    return (
        await asyncio.to_thread(
            ControlClient((owner_beside(place.socket),)).request, method, path, body, timeout_s=20.0
        )
    )[1]


async def enrol(place: World, code: str):
    return await ask(place, "POST", "/v1/enrol", {"code": code})


async def refused(place: World, code: str) -> UserError:
    with pytest.raises(UserError) as caught:
        await enrol(place, code)
    return caught.value


async def new_code(cloud, **body) -> str:
    """Ask the running cloud for another code, as its operator does on its own machine."""
    return (await operator(cloud, "/devcloud/codes", body))["code"]


async def operator(cloud, path, body):
    tls = ssl.create_default_context(cafile=cloud["ca_file"])
    async with httpx.AsyncClient(verify=tls, trust_env=False) as http:
        return (await http.post(cloud["http"] + path, json=body)).json()


async def up(place: World) -> None:
    await until(lambda: place.daemon.uplink.status().up, "uplink up")


@pytest.mark.requirement("I4-enrol")
@pytest.mark.requirement("I4-enrol-secret")
async def test_a_code_is_all_it_takes_and_nothing_is_restarted(tmp_path, secure, real_keys, caplog):
    caplog.set_level("DEBUG", logger="edge")
    code = secure["code"]
    async with edge_of(tmp_path, secure) as place:
        await place.switch_glasses_on()
        told = await enrol(place, code)
        assert told["credentials"] == "certificate"
        assert told["broker"] == secure["mqtt"]
        await place.ready()
        response = await place.call(CALC, {"expression": "6 * 7"})
        assert response.ok
        status = await ask(place, "GET", "/v1/status")
        assert status["uplink"]["source"] == "enrolled"
        assert 89 * 86400 < status["uplink"]["certificate_left_s"] <= 90 * 86400
        kept = (place.folder / "state" / "enrolled" / "enrolment.json").read_text()
    shown = [r.getMessage() for r in caplog.records] + [json.dumps(told), kept]
    assert not [
        line
        for line in shown
        if any(g in line for g in code.split("-")[1:]) or decode(code).secret.hex() in line
    ]


async def test_what_is_kept_is_for_its_owner_only_and_serves_after_a_restart(tmp_path, secure):
    async with edge_of(tmp_path, secure) as place:
        await enrol(place, await new_code(secure))
        folder = place.folder / "state" / "enrolled"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert [stat.S_IMODE(f.stat().st_mode) for f in folder.iterdir()] == [0o600, 0o600]
        await place.stop_daemon()
        place.cloud = {}
        await place.start_daemon()
        await up(place)


@pytest.mark.requirement("I4-enrol-once")
async def test_a_code_works_once_and_a_mistyped_one_is_not_spent(tmp_path, secure):
    code = await new_code(secure)
    async with edge_of(tmp_path, secure) as place:
        e = await refused(place, code[:20] + ("Z" if code[20] != "Z" else "Y") + code[21:])
        assert (e.code, e.message[:29]) == ("BAD_CODE", "character group 2 is mistyped")
        await enrol(place, code.lower().replace("-", " "))
        e = await refused(place, code)
        assert (e.code, e.message) == ("CODE_USED", "this code was used already")
        assert "ask for another" in e.fix
        await up(place)  # the first one's credentials are still in force


async def test_the_same_edge_enrols_again_and_another_one_cannot_take_its_name(tmp_path, secure):
    async with edge_of(tmp_path, secure) as place:
        await enrol(place, await new_code(secure))
        await enrol(place, await new_code(secure))
        await up(place)
        kept, place.daemon.enrolment.current = (
            place.daemon.enrolment.current,
            None,
        )  # as one that only has the name
        e = await refused(place, await new_code(secure))
        assert e.code == "EDGE_TAKEN"
        place.daemon.enrolment.current = kept
        assert (await operator(secure, f"/devcloud/edges/{place.edge_id}/revoke", {})) == {
            "revoked": True
        }
        assert (await refused(place, await new_code(secure))).code == "EDGE_TAKEN"
        await enrol(place, await new_code(secure, edge_id=place.edge_id))


@pytest.mark.requirement("I4-enrol-pinned")
async def test_a_server_whose_authority_is_not_the_codes_gets_nothing(tmp_path, secure):
    """Somebody in between: another server at the very address, first with an authority of its
    own, then showing ours.
    """
    theirs = Authority(tmp_path, "their CA")
    shown, heard = [theirs.pem, Path(secure["ca_file"]).read_bytes()], []

    async def serve(reader, writer):
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        body = shown.pop(0)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        await reader.read()

    async with (
        serving(serve, tls=_server(theirs.sign("server", names=("localhost",)))) as port,
        edge_of(tmp_path, secure) as place,
    ):
        code = encode(replace(decode(await new_code(secure)), enrol_port=port))
        e = await refused(place, code)
        assert e.code == "WRONG_CA"
        assert "nothing was sent" in e.message
        e = await refused(place, code)
        assert e.code == "TLS_UNTRUSTED"
        assert "somebody may stand in between" in e.fix
    assert [h.split()[0] for h in heard] == [b"GET", b"GET"]


async def test_a_configured_broker_wins_and_the_code_is_not_spent(tmp_path, secure):
    code = await new_code(secure)
    async with edge_of(tmp_path, secure, uplink={"host": "127.0.0.1", "port": 1}) as place:
        e = await refused(place, code)
        assert (e.code, "not spent" in e.fix) == ("CONFIGURED", True)
        status = await ask(place, "GET", "/v1/status")
        assert status["uplink"]["source"] == "config"
        await place.stop_daemon()
        place.cloud = {}
        await place.start_daemon()
        await enrol(place, code)


async def test_without_the_extra_a_password_is_enough(tmp_path, secure):
    async with edge_of(tmp_path, secure) as place:
        place.daemon.enrolment._with_keys = False
        assert (await enrol(place, await new_code(secure)))["credentials"] == "password"
        await up(place)
        assert [f.name for f in (place.folder / "state" / "enrolled").iterdir()] == [
            "enrolment.json"
        ]


@pytest.mark.requirement("I4-enrol-renewal")
async def test_a_certificate_is_renewed_over_itself_and_the_next_connection_shows_it(tmp_path):
    async with world(tmp_path) as far, edge_of(tmp_path / "near", {}) as place:
        cloud = await far.start_cloud(
            tls="localhost",
            tenant="acme",
            pool="mine",
            apps=(),
            limits=WorkerLimits(certificate_life=timedelta(seconds=6)),
        )
        assert (await enrol(place, cloud["code"]))["tenant"] == "acme"
        await up(place)
        await until_heard(place, cloud)
        first = place.daemon.enrolment.current
        await until(lambda: place.daemon.enrolment.current.identity != first.identity, "renewed")
        second = place.daemon.enrolment.current
        assert second.ends > first.ends
        assert [p.name for p in (place.folder / "state" / "enrolled").glob("identity-*")] == [
            second.identity
        ]
        await until(lambda: place.daemon.clock.wall() > first.ends, "the first is over")
        place.mark()
        place.daemon.uplink.use(
            replace(place.daemon.cloud.uplink())
        )  # as a broken link would: the next connection
        await place.heard("uplink.up")


async def until_heard(place: World, cloud) -> None:
    """Wait until the cloud has heard this edge under its own tenant."""
    tls = ssl.create_default_context(cafile=cloud["ca_file"])
    async with httpx.AsyncClient(verify=tls, trust_env=False) as http, asyncio.timeout(40):
        while (
            place.edge_id
            not in (await http.get(cloud["http"] + "/devcloud/status")).json()["edges"]
        ):
            await asyncio.sleep(0.05)


def _server(pair):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    return context


# ------------------------------------------------------------------ the commands of the README


@asynccontextmanager
async def command(*words):
    """`glassd` as a person starts it; ended at the end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "edge.cli",
        *words,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


async def said(*words, stdin: str = ""):
    async with command(*words) as process, asyncio.timeout(30):
        out, err = await process.communicate(stdin.encode())
        return process.returncode, out.decode(), err.decode()


@pytest.mark.requirement("I4-enrol")
async def test_the_devcloud_shows_a_code_and_glassd_up_takes_it(tmp_path, real_keys):
    words = ("devcloud", "--tls", "--http", "127.0.0.1:0", "--state", str(tmp_path / "cloud"))
    async with command(*words) as cloud, edge_of(tmp_path / "near", {}) as place:
        async with asyncio.timeout(30):
            up_line = (await cloud.stdout.readline()).decode()
            text = (await cloud.stdout.readuntil(b"Another code: ")).decode()
        assert "GLASSD1-" not in up_line
        code = next(line for line in text.splitlines() if line.startswith("GLASSD1-"))
        assert qr(code) in text
        rest = ("--no-glasses", "--socket", str(place.socket))
        assert await said("up", "-", *rest, stdin="\n") == (
            2,
            "",
            (
                "error: there is no code on stdin\nnext: "
                " paste the code your cloud's operator sent, on one line\n"
            ),
        )
        status, out, err = await said("up", "-", *rest, stdin=code + "\n")
        assert (status, err) == (0, "")
        first, second, *_ = out.splitlines()
        assert first.startswith(
            f"Enrolled with localhost:{decode(code).broker_port} as "
            f"default/{place.edge_id} (client certificate until 2"
        )
        assert second == "Connected to the cloud."
        status, out, err = await said("up", code, *rest)
        assert (status, out) == (1, "")
        assert "better: glassd up -" in err
        assert "used already" in err
        status, out, _ = await said("up", "-", "--json", *rest, stdin=code)
        assert (status, json.loads(out)["error"]["code"]) == (1, "CODE_USED")
        assert (await said("up", "--no-glasses", "--socket", str(place.socket)))[0] == 2


async def test_a_cloud_that_edges_could_not_reach_is_refused_before_it_starts(tmp_path):
    status, out, err = await said(
        "devcloud", "--tls", "cloud.lan", "--http", "127.0.0.1:0", "--state", str(tmp_path)
    )
    assert (status, out) == (2, "")
    assert "edges are to reach cloud.lan: --http 0.0.0.0:" in err
    assert (
        await said(
            "devcloud",
            "--tls",
            "--broker",
            "10.0.0.1:1883",
            "--http",
            "127.0.0.1:0",
            "--state",
            str(tmp_path),
        )
    )[0] == 2


async def test_who_runs_the_cloud_is_on_its_machine_and_edges_see_only_what_is_theirs(
    tmp_path, secure
):
    tls = ssl.create_default_context(cafile=secure["ca_file"])
    async with httpx.AsyncClient(verify=tls, trust_env=False, base_url=secure["http"]) as http:
        assert (await http.get("/api/registry")).status_code == 401
        assert (
            await http.get("/api/registry", headers={"Authorization": "Bearer guessed"})
        ).status_code == 401
        assert (await http.post("/enrol/v1/renew", json={"v": 1, "csr": "x"})).status_code == 401
        for body in (
            {},
            {"v": 1},
            [],
            {"v": 1, "edge_id": "a:b", "secret": "00"},
            {"v": 1, "edge_id": "a", "secret": "zz", "request_id": "r"},
        ):
            assert (await http.post("/enrol/v1/redeem", json=body)).status_code == 400
        assert (await http.post("/enrol/v1/redeem", json={"v": "x" * 20_000})).status_code == 413
    passed = []

    async def app(scope, _receive, _send):
        passed.append(scope["path"])

    sent = []

    async def send(message):
        sent.append(message)

    guarded = guard._with_peer(app, None)
    for address in ("192.0.2.7", "127.0.0.1", "::1", "2001:db8::1"):
        await guarded({"path": "/devcloud/codes", "client": (address, 1)}, None, send)
    await guarded({"path": "/enrol/v1/ca", "client": ("192.0.2.7", 1)}, None, send)
    assert passed == ["/devcloud/codes", "/devcloud/codes", "/enrol/v1/ca"]
    assert [m["status"] for m in sent if "status" in m] == [403, 403]
