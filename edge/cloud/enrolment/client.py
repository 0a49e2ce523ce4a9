"""Enrolment: a code becomes this edge's credentials; its certificate is renewed in time.

Nothing is sent to a server whose authority is not the one the code names.
"""

import asyncio
import logging
import secrets
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from edge.cloud.enrolment.credentials import DamagedEnrolment, Enrolled, EnrolmentFiles
from edge.cloud.enrolment.http import read_json, request
from edge.cloud.enrolment.keys import (
    BadCertificate,
    NoKeys,
    SigningRequest,
    ask,
    can_make_keys,
    life_of,
)
from edge.cloud.mqtt.faults import Fault, error_text, of_os_error
from edge.cloud.mqtt.tls import CLOCK_FLOOR, clock_wrong, dated
from edge.core import enrolment as words
from edge.core.backoff import Backoff, Chance
from edge.ports import EnrolRefused
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.deadlines import Within, unwatched
from edge.runtime.events import Alarmed
from edge.runtime.http_request import HttpAnswer, NotHttp
from firmware_bridge.deadlines import timeout

if TYPE_CHECKING:
    from edge.core.enrolment_code import Offer

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

ALARM: Final = "enrolment"
LOOK_S: Final = 60.0
"""Longest sleep at once: the wall clock may be set meanwhile."""
TRIES: Final = 3
"""For one exchange whose answer was lost: the cloud knows a repetition by its request id."""
AGAIN_S: Final = 1.0
RETRY_S: Final = (30.0, 3600.0)
RENEW_S: Final = 300.0
"""One renewal: a key, a request, a look at the certificate, each with a far shorter timeout."""

_NO_SUCH_PATH: Final = frozenset({404, 405})
_REFUSED: Final = {
    "CODE_USED": ("this code was used already", "each works once: ask for another one"),
    "CODE_EXPIRED": ("this code is too old", "ask for another one"),
    "CODE_UNKNOWN": ("the cloud does not know this code", "ask for another one"),
    "CODE_OF_ANOTHER": ("this code was made for another edge", "ask for one for this edge"),
    "EDGE_TAKEN": (
        "the cloud knows an edge of this id already",
        "ask for a code made for this edge (its id is in glassd status)",
    ),
    "EDGE_REVOKED": (
        "the cloud's operator has revoked this edge",
        "ask the operator for a new code, then: glassd up CODE",
    ),
    "NO_CERTIFICATES": (
        "this cloud gives certificates only",
        "install glassd's extra `enrol`: pip install 'glassd[enrol]'",
    ),
}
_FIXES: Final = {
    Fault.UNKNOWN_HOST: (
        "check this machine's network and DNS, and that the code is from the right cloud"
    ),
    Fault.REFUSED: "the cloud's enrolment is not running there: ask its operator",
    Fault.TIMEOUT: "check the network, and a firewall in between",
    Fault.TLS_UNTRUSTED: (
        "somebody may stand in between, nothing was sent: "
        "try another network, or ask for a new code"
    ),
    Fault.TLS_NAME: (
        "the server's certificate is for another name: its operator must put this name into it"
    ),
    Fault.TLS_EXPIRED: (
        "the server's certificate is past its end: "
        "its operator must renew it; or this machine's clock is ahead (date)"
    ),
    Fault.TLS_EARLY: "this machine's clock is behind (date): timedatectl set-ntp true, then again",
    Fault.TLS_CLIENT_EXPIRED: "enrol again: glassd up CODE",
    Fault.TLS_CLIENT_REVOKED: "ask the operator for a new code, then: glassd up CODE",
}


class EnrolmentOptions(Struct, frozen=True):
    """Who this edge is. `with_keys`: ask for a certificate; None: if keys can be made here."""

    edge_id: str
    version: str
    with_keys: bool | None = None
    retry_s: tuple[float, float] = RETRY_S


class Enrolment:
    """`enrol(code)` once, `run()` as a service. `hide` keeps a secret out of the log."""

    def __init__(
        self,
        files: EnrolmentFiles,
        options: EnrolmentOptions,
        *,
        bus: Bus,
        clock: Clock,
        chance: Chance,
        hide: Callable[[str], None] = lambda _secret: None,
        within: Within = unwatched,
    ) -> None:
        self._files = files
        self._o = options
        self._bus = bus
        self._clock = clock
        self._hide = hide
        self._with_keys = can_make_keys() if options.with_keys is None else options.with_keys
        self._chance = chance
        self._within = within
        self._busy = asyncio.Lock()
        self._changed = asyncio.Event()
        self._alarm = ""
        self._trouble = ""
        self.current: Enrolled | None = None
        """What is stored now; None when this edge never enrolled."""

    # -------------------------------------------------------------- what is kept

    def load(self) -> None:
        """Read the stored credentials, blocking, once. Damaged ones are logged and ignored."""
        try:
            self.current = self._files.load()
        except DamagedEnrolment as e:
            self._trouble = str(e)
            _log.error("%s", e)
        if self.current is not None:
            self._hide(self.current.password)
            self._hide(self.current.cloud_token)

    def broker_context(self) -> ssl.SSLContext:
        """Make the next broker connection's context, blocking. Raise OSError, ValueError."""
        mine = self._enrolled()
        return self._files.context(mine, ca_pem=mine.ca_pem)

    def cloud_context(self) -> ssl.SSLContext:
        """Make the next cloud connection's context, blocking. Raise OSError, ValueError."""
        mine = self._enrolled()
        return self._files.context(mine, ca_pem=mine.enrol_ca_pem)

    def _enrolled(self) -> Enrolled:
        if self.current is None:
            raise ValueError("this edge is not enrolled")
        return self.current

    def left_s(self) -> float | None:
        """Seconds our certificate still lives; None when there is none."""
        ends = self.current.ends if self.current else 0.0
        return ends - self._clock.wall() if ends else None

    # -------------------------------------------------------------- a code

    async def enrol(self, code: str) -> Enrolled:
        """Turn a code into credentials on disk. Raise `EnrolRefused`: then nothing has changed."""
        from edge.core.enrolment_code import BadCode, decode  # noqa: PLC0415 - at the first code

        try:
            offer = decode(code)
        except BadCode as e:
            raise EnrolRefused("BAD_CODE", str(e), e.fix) from None
        self._hide(code)
        if self._busy.locked():
            problem = "this edge is enrolling, or renewing, at this moment"
            raise EnrolRefused("BUSY", problem, "again in a moment", final=False)
        async with self._busy:
            where = f"{offer.enrol_host}:{offer.enrol_port}"
            ca_pem = await self._attempt(partial(self._fetch_ca, offer), where)
            signing = None
            if self._with_keys:
                signing = await self._attempt(partial(ask, self._o.edge_id), "this machine")
            answer = await self._attempt(partial(self._redeem, offer, ca_pem, signing), where)
            enrolled = await self._keep(offer, ca_pem, signing, answer)
        self.current = enrolled
        self._set_alarm("")
        self._changed.set()
        who = f"{enrolled.tenant}/{enrolled.edge_id}"
        _log.info("enrolled with %s as %s, by %s", enrolled.host, who, enrolled.how)
        return enrolled

    async def _fetch_ca(self, offer: "Offer") -> str:
        """Fetch the authority's certificate, unverified: the code's fingerprint verifies it."""
        blind = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        blind.check_hostname = False
        blind.verify_mode = ssl.CERT_NONE
        answer = await request(offer.enrol_host, offer.enrol_port, f"{words.PATH}/ca", tls=blind)
        if answer.status in _NO_SUCH_PATH:
            raise NotHttp("nobody enrols edges there (no /enrol/v1)")
        try:
            pem = answer.body.decode("ascii")
            der = ssl.PEM_cert_to_DER_cert(pem)
        except ValueError:
            problem = f"what it gives as its authority ({answer.status}) is no certificate"
            raise NotHttp(problem) from None
        if sha256(der).digest() != offer.ca_sha256:
            raise EnrolRefused(
                "WRONG_CA",
                "the authority of the server there is not the one the code names; nothing was sent",
                _FIXES[Fault.TLS_UNTRUSTED],
            )
        return ssl.DER_cert_to_PEM_cert(der)

    async def _redeem(
        self, offer: "Offer", ca_pem: str, signing: SigningRequest | None
    ) -> words.EnrolmentGranted:
        """Spend the code over a connection verified with that authority alone."""
        # Who we were, for the cloud that knows us already; to no other.
        known = self.current if self.current and self.current.enrol_ca_pem == ca_pem else None
        body = {
            "v": words.VERSION,
            "secret": offer.secret.hex(),
            "edge_id": self._o.edge_id,
            "version": self._o.version,
            "request_id": secrets.token_hex(16),
            "csr": signing.csr_pem if signing else None,
            "proof": known.cloud_token if known else "",
        }
        where = (offer.enrol_host, offer.enrol_port, f"{words.PATH}/redeem")
        tls = ssl.create_default_context(cadata=ca_pem)
        for left in reversed(range(TRIES)):
            try:
                answer = _ok(await request(*where, tls=tls, body=body))
            except (ConnectionError, TimeoutError, ssl.SSLEOFError):
                if not left:
                    raise
                await asyncio.sleep(AGAIN_S)
            else:
                certificate = signing is not None
                return words.granted(answer, edge_id=self._o.edge_id, certificate=certificate)
        raise AssertionError("the last try raises")

    async def _keep(
        self,
        offer: "Offer",
        ca_pem: str,
        signing: SigningRequest | None,
        found: words.EnrolmentGranted,
    ) -> Enrolled:
        self._hide(found.password)
        self._hide(found.cloud_token)
        given = asdict(found)
        chain_pem = given.pop("certificate_pem")
        given |= {"edge_id": self._o.edge_id, "ca_pem": found.ca_pem or ca_pem}
        enrolled = Enrolled(
            enrol_host=offer.enrol_host,
            enrol_port=offer.enrol_port,
            enrol_ca_pem=ca_pem,
            **given,
        )
        return await self._save(enrolled, signing, chain_pem)

    async def _save(
        self, enrolled: Enrolled, signing: SigningRequest | None, chain_pem: str
    ) -> Enrolled:
        try:
            identity = b""
            if signing is not None:
                life = await life_of(chain_pem, signing.key_pem)
                enrolled = replace(enrolled, begins=life.begins, ends=life.ends)
                identity = (signing.key_pem + chain_pem).encode()
            return await asyncio.to_thread(self._files.save, enrolled, identity_pem=identity)
        except (BadCertificate, NoKeys) as e:
            problem = f"the certificate the cloud gave cannot be used: {e}"
            raise EnrolRefused("BAD_ANSWER", problem, "tell the cloud's operator") from None
        except OSError as e:
            problem = f"the credentials cannot be kept: {error_text(e)}"
            fix = (
                "make room or correct who may write there, "
                "then ask for a new code: this one is spent"
            )
            raise EnrolRefused("CANNOT_KEEP", problem, fix) from None

    # -------------------------------------------------------------- renewal

    async def run(self) -> None:
        """Renew the certificate at two thirds of its life, forever; without one only wait."""
        if self._trouble:
            self._set_alarm(self._trouble)
        first_s, most_s = self._o.retry_s
        backoff = Backoff(self._chance, first_s=first_s, most_s=most_s)
        while True:
            self._changed.clear()
            pause_s = await self._step(backoff)
            with suppress(TimeoutError):
                async with timeout(pause_s):
                    await self._changed.wait()

    async def _step(self, backoff: Backoff) -> float:
        """Renew if it is time; return the seconds until the next look."""
        mine, now = self.current, self._clock.wall()
        if mine is None or not mine.identity or now < CLOCK_FLOOR:
            return LOOK_S
        due = words.renew_at(mine.begins, mine.ends)
        if now < due:
            self._set_alarm("")
            return min(LOOK_S, due - now)
        first_s = self._o.retry_s[0]
        try:
            with self._within(RENEW_S, "enrolment: renewing"):
                await self._renew(mine)
        except EnrolRefused as e:
            self._note_failure(mine, e, now)
            return max(first_s / 2, backoff.after(0.0))
        backoff.after(float("inf"))
        return first_s / 2  # not at once: a cloud's certificate may be due as it comes

    async def _renew(self, mine: Enrolled) -> None:
        """Ask for the next certificate, of a new key; the present one proves who we are."""
        async with self._busy:
            if self.current is not mine:
                return
            where = f"{mine.enrol_host}:{mine.enrol_port}"
            signing = await self._attempt(partial(ask, self._o.edge_id), "this machine")
            chain = await self._attempt(partial(self._ask_renewal, mine, signing), where)
            self.current = await self._save(mine, signing, chain)
        self._set_alarm("")
        _log.info("this edge's certificate is renewed, until %s", words.day(self.current.ends))

    async def _ask_renewal(self, mine: Enrolled, signing: SigningRequest) -> str:
        try:
            tls = await asyncio.to_thread(self._files.context, mine, ca_pem=mine.enrol_ca_pem)
        except (OSError, ValueError) as e:
            problem = f"our own certificate cannot be read: {error_text(e)}"
            raise EnrolRefused("TLS_FILES", problem, "enrol again: glassd up CODE") from None
        body = {"v": words.VERSION, "csr": signing.csr_pem}
        where = (mine.enrol_host, mine.enrol_port, f"{words.PATH}/renew")
        return words.renewed(_ok(await request(*where, tls=tls, body=body)))

    def _note_failure(self, mine: Enrolled, e: EnrolRefused, now: float) -> None:
        """Log a first failure as WARNING; alarm when it is final or time runs out."""
        level = logging.DEBUG if self._trouble else logging.WARNING
        _log.log(level, "this edge's certificate is not renewed: %s", e)
        self._trouble, day = str(e), words.day(mine.ends)
        if now >= mine.ends:
            self._set_alarm(f"This edge's certificate ended {day}; enrol again: glassd up CODE")
        elif e.final or now >= words.worry_at(mine.begins, mine.ends):
            self._set_alarm(f"This edge's certificate ends {day} and is not renewed: {e}; {e.fix}")

    def _set_alarm(self, text: str) -> None:
        """Publish what a person should do; "" ends the alarm."""
        self._trouble = self._trouble if text else ""
        if text != self._alarm:
            self._alarm = text
            self._bus.publish(Alarmed(ALARM, text, over=not text))

    # -------------------------------------------------------------- what goes wrong

    async def _attempt(self, work: Callable[[], Awaitable[_T]], where: str) -> _T:
        """Do a step, if the clock is right for certificates. Raise `EnrolRefused` with the fix."""
        wall = self._clock.wall()
        if wall < CLOCK_FLOOR:
            fix = "set it, then again: timedatectl set-ntp true, or date -s"
            raise EnrolRefused("CLOCK", clock_wrong(wall).detail, fix, final=False)
        try:
            return await work()
        except NoKeys as e:
            fix = "see the log (journalctl -u glassd), then again"
            raise EnrolRefused("NO_KEYS", str(e), fix, final=False) from None
        except (OSError, NotHttp, words.BadAnswer) as e:
            _raise(e, where, wall)


def _raise(e: OSError | NotHttp | words.BadAnswer, where: str, wall: float) -> NoReturn:
    if isinstance(e, OSError):
        verdict = dated(of_os_error(e), wall)
        code, detail = verdict.fault.upper(), verdict.detail
        fix = _FIXES.get(verdict.fault, verdict.hint)
    else:
        code, fix = "BAD_ANSWER", "ask whether the code is right"
        detail = error_text(e) if isinstance(e, ValueError) else str(e)
    raise EnrolRefused(code, f"{where}: {detail}", fix, final=False) from None


def _ok(answer: HttpAnswer) -> dict[str, object]:
    """Return the body of a 200. Raise `EnrolRefused` with the cloud's reason."""
    body = read_json(answer)
    if answer.status == 200:
        return body
    code, message = words.refusal(body)
    other = f"the cloud refuses ({answer.status}): {error_text(ValueError(message))}"
    problem, fix = _REFUSED.get(code, (other, "ask the cloud's operator"))
    final = answer.status < 500 and answer.status != 429
    raise EnrolRefused(code or "REFUSED", problem, fix, final=final)
