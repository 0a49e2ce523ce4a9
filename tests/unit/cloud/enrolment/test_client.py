"""An edge at a cloud's counter: what it tells whom, what it makes of every answer, and when it
renews.
"""

import asyncio
import json
import random
import re
import ssl
from contextlib import asynccontextmanager
from hashlib import sha256

import pytest
from msgspec.structs import replace

from edge.cloud.enrolment.client import AGAIN_S, TRIES, Enrolment, EnrolmentOptions
from edge.cloud.enrolment.credentials import EnrolmentFiles
from edge.cloud.enrolment.http import MAX_ANSWER, REQUEST_S
from edge.cloud.enrolment.keys import LIMIT_S
from edge.cloud.mqtt.tls import CLOCK_FLOOR
from edge.commands.up import ENROL_S
from edge.core.backoff import Backoff
from edge.core.enrolment_code import Offer, encode
from edge.ports import EnrolRefused
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import Alarmed
from tests.e2e.broker import HOST, serving, until
from tests.e2e.certificates import DAY, Authority, keys_made_here, now

pytestmark = pytest.mark.enable_socket


@pytest.fixture(autouse=True)
def quick_keys(monkeypatch):
    monkeypatch.setattr("edge.cloud.enrolment.keys._child", keys_made_here)


GOOD = {
    "v": 1,
    "edge_id": "edge-1",
    "tenant": "acme",
    "broker": {"host": "mqtt.example", "port": 8883},
    "username": "edge-1",
    "password": "hunter2",
    "cloud": {"url": "https://cloud.example", "token": "t0ken"},
    "new_in_version_9": True,
}


class Counter:
    """A cloud's endpoint that says what a test tells it; an answer that is bytes is written as it
    is, None hangs up (as one does that ends within its JSON).
    """

    def __init__(self, folder, **server):
        self.ca = Authority(folder)
        self.pair = self.ca.sign("server", **server)
        self.answers = {}
        self.asked = []
        self.serves = asyncio.Event()
        self.serves.set()

    @asynccontextmanager
    async def open(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.pair.cert, self.pair.key)
        context.load_verify_locations(self.ca.file)
        context.verify_mode = ssl.CERT_OPTIONAL
        async with serving(self._serve, tls=context) as self.port:
            yield self

    async def _serve(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split()[1].rpartition("/")[2]
        length = next(
            (
                int(line.split(":")[1])
                for line in head.split("\r\n")
                if line.lower().startswith("content-length")
            ),
            0,
        )
        body = json.loads(await reader.readexactly(length)) if length else None
        peer = writer.get_extra_info("peercert")
        self.asked.append((path, body, peer))
        await self.serves.wait()
        answer = self._answer(path)
        if answer is None:
            return
        cut = isinstance(answer, bytes) and answer.endswith(b"{")
        if not isinstance(answer, bytes):
            status, content = answer
            content = content if isinstance(content, bytes) else json.dumps(content).encode()
            answer = b"HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n%s" % (
                status,
                len(content),
                content,
            )
        writer.write(answer)
        await writer.drain()
        if not cut:
            await reader.read()

    def _answer(self, path):
        if path == "ca" and "ca" not in self.answers:
            return 200, self.ca.pem
        waiting = self.answers[path]
        return waiting.pop(0) if isinstance(waiting, list) else waiting

    def code(self, **changes):
        offer = Offer(
            broker_host=HOST,
            broker_port=1,
            enrol_host=HOST,
            enrol_port=self.port,
            tenant="acme",
            ca_sha256=sha256(self.ca.der).digest(),
            secret=b"0123456789abcdef",
        )
        return encode(replace(offer, **changes))

    def paths(self):
        return [path for path, _, _ in self.asked]


@asynccontextmanager
async def counter(folder, **server):
    async with Counter(folder, **server).open() as there:
        yield there


class Here:
    """One edge; `wall` moves its clock."""

    def __init__(self, folder, *, with_keys=False):
        self.wall = 0.0
        self.looks = 0
        self.hidden = []
        self.alarms = []
        real = Clock.system()
        self.bus = Bus()
        self.files = EnrolmentFiles(folder)
        self.enrolment = Enrolment(
            self.files,
            EnrolmentOptions("edge-1", "1", with_keys, retry_s=(0.02, 0.05)),
            bus=self.bus,
            chance=random.random,
            hide=self.hidden.append,
            clock=Clock(
                boot=real.boot, wall=lambda: self._look() or self.wall or real.wall(), boot_id=""
            ),
        )
        self.enrolment.load()

    def _look(self):
        self.looks += 1

    async def refused(self, code):
        with pytest.raises(EnrolRefused) as caught:
            await self.enrolment.enrol(code)
        assert str(caught.value)
        assert caught.value.fix
        return caught.value

    @asynccontextmanager
    async def running(self):
        async def watch():
            with self.bus.listen() as heard:
                async for event in heard:
                    if isinstance(event, Alarmed):
                        self.alarms.append(event)

        tasks = [asyncio.create_task(watch()), asyncio.create_task(self.enrolment.run())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
def here(tmp_path):
    return Here(tmp_path / "state")


async def test_granted_credentials_are_stored_and_their_secrets_hidden_in_logs(tmp_path, here):
    async with counter(tmp_path) as there:
        there.answers["redeem"] = 200, GOOD
        kept = await here.enrolment.enrol(there.code())
    assert (kept.host, kept.port, kept.tenant, kept.username, kept.how) == (
        "mqtt.example",
        8883,
        "acme",
        "edge-1",
        "password",
    )
    assert kept.ca_pem == there.ca.pem.decode()  # none was named: the code's
    assert here.files.load() == kept
    assert {"hunter2", "t0ken"} < set(here.hidden)
    (_, body, _) = there.asked[1]
    assert (body["secret"], body["edge_id"], body["csr"], body["proof"]) == (
        b"0123456789abcdef".hex(),
        "edge-1",
        None,
        "",
    )


async def test_a_lost_answer_is_requested_again_with_the_same_id(tmp_path, here, monkeypatch):
    monkeypatch.setattr("edge.cloud.enrolment.client.AGAIN_S", 0.01)
    async with counter(tmp_path) as there:
        there.answers["redeem"] = [
            None,
            b"HTTP/1.1 200 x\r\nContent-Length: 999\r\n\r\n{",
            (200, GOOD),
        ]
        await here.enrolment.enrol(there.code())
        asked = [body["request_id"] for path, body, _ in there.asked if path == "redeem"]
        assert len(asked) == 3
        assert len(set(asked)) == 1
        there.answers["redeem"] = [None] * 9
        await here.refused(there.code())
        assert there.paths().count("redeem") == 6


@pytest.mark.parametrize(
    ("answer", "code", "says"),
    [
        ((410, {"error": {"code": "CODE_USED", "message": "m"}}), "CODE_USED", "used already"),
        ((410, {"error": {"code": "CODE_EXPIRED"}}), "CODE_EXPIRED", "too old"),
        ((404, {"error": {"code": "CODE_UNKNOWN"}}), "CODE_UNKNOWN", "does not know this code"),
        (
            (500, {"error": {"code": "OOPS", "message": "a\x1b[31m b"}}),
            "OOPS",
            r"refuses \(500\): a\[31m b",
        ),
        ((502, {"error": "no table"}), "REFUSED", "refuses"),
        ((502, b"<html>"), "BAD_ANSWER", "not JSON"),
        ((200, []), "BAD_ANSWER", "not a JSON object"),
        ((200, {**GOOD, "v": 2}), "BAD_ANSWER", "v: must be 1"),
        ((200, {**GOOD, "edge_id": "edge-2"}), "BAD_ANSWER", "for another edge"),
        ((200, {**GOOD, "broker": {"host": "h", "port": "8883"}}), "BAD_ANSWER", "broker.port"),
        ((200, {**GOOD, "broker": 3}), "BAD_ANSWER", "broker: must be an object"),
        ((200, {**GOOD, "password": ""}), "BAD_ANSWER", "are missing"),
        ((200, {**GOOD, "tenant": "x" * 600}), "BAD_ANSWER", "tenant: must be text"),
        ((200, {**GOOD, "tenant": "a\nb"}), "BAD_ANSWER", "tenant: must be printable"),
        ((200, {**GOOD, "tenant": "a/b"}), "BAD_ANSWER", "tenant: may hold letters"),
        ((200, {**GOOD, "pool": "+"}), "BAD_ANSWER", "pool: may hold letters"),
        (
            (200, {**GOOD, "broker": {"host": "mqtt://h", "port": 8883}}),
            "BAD_ANSWER",
            "broker.host: must be a host",
        ),
        (
            (200, {**GOOD, "cloud": {"url": "file:///etc"}}),
            "BAD_ANSWER",
            "cloud.url: must begin with https",
        ),
        (
            (200, {**GOOD, "cloud": {"url": "https://h:x"}}),
            "BAD_ANSWER",
            "cloud.url: must begin with https",
        ),
        ((200, b" " * (MAX_ANSWER + 1)), "BAD_ANSWER", "more than 64 KiB"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "BAD_ANSWER", "does not speak HTTP"),
        (b"HTTP/1.1 200 x\r\nX: " + b"y" * 20_000, "BAD_ANSWER", "does not speak HTTP"),
    ],
)
async def test_an_answer_without_a_grant_is_an_error_and_stores_nothing(
    tmp_path, here, answer, code, says
):
    async with counter(tmp_path) as there:
        there.answers["redeem"] = answer
        e = await here.refused(there.code())
    assert e.code == code
    assert re.search(says, str(e)), str(e)
    assert here.files.load() is None


@pytest.mark.requirement("I4-enrol-pinned")
@pytest.mark.parametrize(
    ("server", "code"),
    [
        ({"names": ("other.example",)}, "TLS_NAME"),
        ({"begins": now() - 9 * DAY, "ends": now() - DAY}, "TLS_EXPIRED"),
        ({"begins": now() + DAY}, "TLS_EARLY"),
    ],
)
async def test_the_secret_is_sent_to_a_verified_server_only(tmp_path, here, server, code):
    server = {"ends": now() + 9 * DAY} | server
    async with counter(tmp_path, **server) as there:
        e = await here.refused(there.code())
        assert e.code == code
        assert there.paths() == ["ca"]


@pytest.mark.requirement("I4-enrol-pinned")
@pytest.mark.parametrize(
    "shown", [b"junk", b"-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n", b"\xff"]
)
async def test_an_authority_that_is_none_gets_nothing(tmp_path, here, shown):
    async with counter(tmp_path) as there:
        there.answers["ca"] = 200, shown
        assert (await here.refused(there.code())).code in {"BAD_ANSWER", "WRONG_CA"}
        assert there.paths() == ["ca"]
        there.answers["ca"] = 404, b""
        assert "nobody enrols edges there" in str(await here.refused(there.code()))
        there.answers["ca"] = 200, there.ca.pem
        assert (await here.refused(there.code(ca_sha256=bytes(32)))).code == "WRONG_CA"


@pytest.mark.requirement("I4-tls-clock")
async def test_with_a_clock_that_was_never_set_nobody_is_asked(tmp_path, here):
    async with counter(tmp_path) as there:
        here.wall = CLOCK_FLOOR - 1
        e = await here.refused(there.code())
        assert (e.code, str(e)) == (
            "CLOCK",
            "the clock says 2025-12-31 23:59 UTC: waiting for time sync",
        )
        assert there.asked == []


async def test_an_unreachable_broker_is_reported(here):
    from tests.e2e.broker import free_port

    offer = Offer(
        broker_host="b",
        broker_port=1,
        enrol_host=HOST,
        enrol_port=free_port(),
        tenant="t",
        ca_sha256=bytes(32),
        secret=bytes(16),
    )
    assert (await here.refused(encode(offer))).code == "REFUSED"


async def test_a_server_that_never_answers_is_given_up(tmp_path, here, monkeypatch):
    from functools import partial

    from edge.cloud.enrolment import client
    from edge.cloud.enrolment.http import request

    monkeypatch.setattr(client, "request", partial(request, limit_s=0.3))
    async with serving(lambda reader, _writer: reader.read()) as port:
        offer = Offer(
            broker_host="b",
            broker_port=1,
            enrol_host=HOST,
            enrol_port=port,
            tenant="t",
            ca_sha256=bytes(32),
            secret=bytes(16),
        )
        assert (await here.refused(encode(offer))).code == "TIMEOUT"


def test_who_spends_a_code_waits_as_long_as_that_may_take():
    asked, keys = (1 + TRIES) * REQUEST_S + (TRIES - 1) * AGAIN_S, 2 * LIMIT_S
    assert asked + keys < ENROL_S


async def test_one_code_at_a_time_is_spent(tmp_path, here):
    async with counter(tmp_path) as there:
        there.answers["redeem"] = 200, GOOD
        there.serves.clear()
        spending = asyncio.ensure_future(here.enrolment.enrol(there.code()))
        try:
            await until(lambda: there.asked, what="the first one at the counter")
            assert (await here.refused(there.code())).code == "BUSY"
        finally:
            there.serves.set()
            await spending
        assert there.paths() == ["ca", "redeem"]


async def test_damaged_credentials_raise_an_alarm_and_are_ignored(tmp_path, here):
    async with counter(tmp_path) as there:
        there.answers["redeem"] = 200, GOOD
        await here.enrolment.enrol(there.code())
    (tmp_path / "state" / "enrolled" / "enrolment.json").write_text("{")
    again = Here(tmp_path / "state")
    assert again.enrolment.current is None
    async with again.running():
        await until(lambda: again.alarms, what="an alarm")
    assert "enrol again: glassd up CODE" in again.alarms[0].text


async def test_an_alarm_of_what_was_damaged_is_over_with_the_next_enrolment(tmp_path):
    (tmp_path / "state" / "enrolled").mkdir(parents=True)
    (tmp_path / "state" / "enrolled" / "enrolment.json").write_text("null")
    here = Here(tmp_path / "state")
    async with counter(tmp_path) as there, here.running():
        await until(lambda: here.alarms, what="an alarm")
        there.answers["redeem"] = (
            200,
            GOOD,
        )  # a password: there is no renewal that would take it back
        await here.enrolment.enrol(there.code())
        await until(lambda: here.alarms[-1].over, what="the alarm over")


# ------------------------------------------------------------------ certificates


class Signing(Counter):
    """A counter that signs what it is asked to, for `life`."""

    life = 90 * DAY

    def _answer(self, path):
        if path in self.answers or path == "ca":
            return super()._answer(path)
        (_, body, _) = self.asked[-1]
        pem = self.signed(body["csr"])
        return 200, (
            {**GOOD, "certificate": pem} if path == "redeem" else {"v": 1, "certificate": pem}
        )

    def signed(self, csr_pem):
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.serialization import Encoding

        from tests.e2e.certificates import name

        csr = x509.load_pem_x509_csr(csr_pem.encode())
        cert = (
            x509.CertificateBuilder()
            .subject_name(name("edge-1"))
            .issuer_name(self.ca.x509.subject)
            .public_key(csr.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now())
            .not_valid_after(now() + self.life)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.ca.key.public_key()),
                critical=False,
            )
            .sign(self.ca.key, hashes.SHA256())
        )
        return cert.public_bytes(Encoding.PEM).decode()


@asynccontextmanager
async def certified(folder):
    """An edge that has a certificate of 90 days, and the counter that gave it."""
    async with Signing(folder).open() as there:
        one = Here(folder / "state", with_keys=True)
        await one.enrolment.enrol(there.code())
        yield one, there


@pytest.mark.requirement("I4-enrol-renewal")
async def test_a_certificate_renews_itself_at_two_thirds_of_its_life(tmp_path):
    async with certified(tmp_path) as (one, there):
        first = one.enrolment.current
        async with one.running():
            one.wall = first.begins + 59 * 86400
            await until(lambda: one.looks, what="the first look")
            before = one.looks
            one.enrolment._changed.set()
            await until(lambda: one.looks > before, what="a look at the clock")
            assert "renew" not in there.paths()
            one.wall = first.begins + 61 * 86400
            there.life = 200 * DAY
            one.enrolment._changed.set()
            await until(lambda: one.enrolment.current.identity != first.identity, what="renewed")
        (_, body, peer) = there.asked[-1]
        assert peer["subject"] == ((("commonName", "edge-1"),),)
        assert set(body) == {"v", "csr"}
        assert one.files.load() == one.enrolment.current
        assert one.alarms == []


@pytest.mark.requirement("I4-enrol-renewal")
async def test_a_failed_renewal_is_repeated_and_raises_an_alarm_near_the_end(tmp_path, caplog):
    async with certified(tmp_path) as (one, there):
        first = one.enrolment.current
        there.answers["renew"] = 503, {"error": {"code": "BUSY", "message": "later"}}
        async with one.running():
            one.wall = first.begins + 61 * 86400
            one.enrolment._changed.set()
            await until(lambda: there.paths().count("renew") > 2, what="three tries")
            assert one.alarms == []
            one.wall = first.begins + 80 * 86400
            await until(lambda: one.alarms, what="an alarm")
            assert "is not renewed" in one.alarms[-1].text
            one.wall = first.begins + 91 * 86400
            await until(lambda: "ended" in one.alarms[-1].text, what="its end")
            assert "glassd up CODE" in one.alarms[-1].text
            one.wall = first.begins + 89 * 86400
            there.life = 200 * DAY
            del there.answers["renew"]
            await until(lambda: one.alarms[-1].over, what="the alarm over")
        warned = [
            r
            for r in caplog.records
            if "is not renewed" in r.getMessage() and r.levelname == "WARNING"
        ]
        assert len(warned) == 1


async def test_a_certificate_due_at_once_is_renewed_after_a_pause(tmp_path):
    async with certified(tmp_path) as (one, _):
        one.wall = one.enrolment.current.begins + 61 * 86400
        assert await one.enrolment._step(Backoff(random.random, first_s=0.02, most_s=0.05)) > 0


async def test_the_next_renewal_that_fails_is_a_warning_again(tmp_path, caplog):
    async with certified(tmp_path) as (one, there):
        backoff = Backoff(random.random, first_s=0.02, most_s=0.05)
        one.wall = one.enrolment.current.begins + 61 * 86400
        for answer in ((503, {}), None, (503, {})):
            if answer:
                there.answers["renew"] = answer
            else:
                del there.answers["renew"]
            await one.enrolment._step(backoff)
        assert (
            len(
                [
                    r
                    for r in caplog.records
                    if "is not renewed" in r.getMessage() and r.levelname == "WARNING"
                ]
            )
            == 2
        )


async def test_a_revoked_edge_hears_so_at_once(tmp_path):
    async with certified(tmp_path) as (one, there):
        there.answers["renew"] = 403, {"error": {"code": "EDGE_REVOKED", "message": "m"}}
        async with one.running():
            one.wall = one.enrolment.current.begins + 61 * 86400
            one.enrolment._changed.set()
            await until(lambda: one.alarms, what="an alarm")
            assert "revoked this edge" in one.alarms[0].text


async def test_a_missing_identity_file_raises_an_error_with_the_fix(tmp_path):
    async with certified(tmp_path) as (one, there):
        (tmp_path / "state" / "enrolled" / one.enrolment.current.identity).unlink()
        async with one.running():
            one.wall = one.enrolment.current.begins + 61 * 86400
            one.enrolment._changed.set()
            await until(lambda: one.alarms, what="an alarm")
        assert "our own certificate cannot be read: No such file" in one.alarms[0].text
        assert "enrol again: glassd up CODE" in one.alarms[0].text
        assert "renew" not in there.paths()


async def test_a_certificate_for_another_key_is_not_stored(tmp_path):
    async with certified(tmp_path) as (one, there):
        first = one.enrolment.current
        stranger = there.ca.sign("stranger", client=True).cert.read_text()
        there.answers["redeem"] = 200, {**GOOD, "certificate": stranger}
        e = await one.refused(there.code())
        assert "another key" in str(e)
        there.answers["redeem"] = 200, {**GOOD, "certificate": "junk"}
        assert "cannot be read" in str(await one.refused(there.code()))
        assert one.enrolment.current is first
        assert one.files.load() == first
        (_, body, _) = there.asked[-1]
        assert body["proof"] == "t0ken"  # to the same authority only


@pytest.mark.requirement("I4-enrol-secret")
async def test_the_token_of_one_cloud_is_not_shown_to_another(tmp_path):
    async with certified(tmp_path) as (one, _):
        (tmp_path / "b").mkdir()
        async with Signing(tmp_path / "b").open() as other:
            await one.enrolment.enrol(other.code())
            (_, body, _) = other.asked[-1]
            assert body["proof"] == ""


@pytest.mark.parametrize("program", ["import sys; sys.exit(3)", "print(end='')"])
async def test_without_a_key_the_code_is_not_spent(tmp_path, monkeypatch, program):
    monkeypatch.undo()
    monkeypatch.setattr("edge.cloud.enrolment.keys._CHILD", program)
    async with Signing(tmp_path).open() as there:
        one = Here(tmp_path / "state", with_keys=True)
        e = await one.refused(there.code())
        assert e.code == "NO_KEYS"
        assert there.paths() == ["ca"]
