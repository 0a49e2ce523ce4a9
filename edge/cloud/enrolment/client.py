"""Enrolment: a code becomes this edge's credentials; its certificate is renewed in time.

Nothing is sent to a server whose authority is not the one the code names.
"""

import asyncio
import logging
import secrets
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Final, NoReturn, TypeVar

from edge.cloud.enrolment.credentials import DamagedEnrolment, Enrolled, EnrolmentFiles
from edge.cloud.enrolment.http import HttpAnswer, NotHttp, request
from edge.cloud.enrolment.keys import (
    BadCertificate,
    NoKeys,
    SigningRequest,
    ask,
    can_make_keys,
    life_of,
)
from edge.cloud.mqtt.faults import Fault, of_os_error, said
from edge.cloud.mqtt.tls import CLOCK_FLOOR, clock_wrong, dated
from edge.core import enrolment as words
from edge.core.backoff import Backoff, Chance
from edge.core.enrolment_code import BadCode, Offer, decode
from edge.ports import EnrolRefused
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.deadlines import Within, unwatched
from edge.runtime.events import Alarmed
from firmware_bridge.deadlines import timeout

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


class Enrolment:
    """`enrol(code)` once, `run()` as a service. `hide` keeps a secret out of the log."""

    def __init__(
        self,
        files: EnrolmentFiles,
        *,
        edge_id: str,
        version: str,
        bus: Bus,
        clock: Clock,
        chance: Chance,
        hide: Callable[[str], None] = lambda _secret: None,
        with_keys: bool | None = None,
        retry_s: tuple[float, float] = RETRY_S,
        within: Within = unwatched,
    ) -> None:
        self._files = files
        self._edge_id = edge_id
        self._version = version
        self._bus = bus
        self._clock = clock
        self._hide = hide
        self._with_keys = can_make_keys() if with_keys is None else with_keys
        self._chance = chance
        self._retry_s = retry_s
        self._within = within
        self._busy = asyncio.Lock()
        self._changed = asyncio.Event()
        self._alarm = ""
        self._trouble = ""
        self.current: Enrolled | None = None
        """What is kept now; None when this edge never enrolled."""

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
        return self._files.context(self._kept, ca_pem=self._kept.ca_pem)

    def cloud_context(self) -> ssl.SSLContext:
        """Make the next cloud connection's context, blocking. Raise OSError, ValueError."""
        return self._files.context(self._kept, ca_pem=self._kept.enrol_ca_pem)

    @property
    def _kept(self) -> Enrolled:
        if self.current is None:
            raise ValueError("this edge is not enrolled")
        return self.current

    def left_s(self) -> float | None:
        """Seconds our certificate still lives; None when there is none."""
        return (
            self.current.ends - self._clock.wall() if self.current and self.current.ends else None
        )

    # -------------------------------------------------------------- a code

    async def enrol(self, code: str) -> Enrolled:
        """Turn a code into credentials on disk. Raise `EnrolRefused`: then nothing has changed."""
        try:
            offer = decode(code)
        except BadCode as e:
            raise EnrolRefused("BAD_CODE", str(e), e.fix) from None
        self._hide(code)
        if self._busy.locked():
            raise EnrolRefused(
                "BUSY",
                "this edge is enrolling, or renewing, at this moment",
                "again in a moment",
                final=False,
            )
        async with self._busy:
            where = f"{offer.enrol_host}:{offer.enrol_port}"
            ca_pem = await self._told(partial(self._fetch_ca, offer), where)
            asked = (
                await self._told(partial(ask, self._edge_id), "this machine")
                if self._with_keys
                else None
            )
            answer = await self._told(partial(self._redeem, offer, ca_pem, asked), where)
            enrolled = await self._keep(offer, ca_pem, asked, answer)
        self.current = enrolled
        self._tell("")
        self._changed.set()
        _log.info(
            "enrolled with %s as %s/%s, by %s",
            enrolled.host,
            enrolled.tenant,
            enrolled.edge_id,
            enrolled.how,
        )
        return enrolled

    async def _fetch_ca(self, offer: Offer) -> str:
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
            raise NotHttp(
                f"what it gives as its authority ({answer.status}) is no certificate"
            ) from None
        if sha256(der).digest() != offer.ca_sha256:
            raise EnrolRefused(
                "WRONG_CA",
                "the authority of the server there is not the one the code names; nothing was sent",
                _FIXES[Fault.TLS_UNTRUSTED],
            )
        return ssl.DER_cert_to_PEM_cert(der)

    async def _redeem(
        self, offer: Offer, ca_pem: str, asked: SigningRequest | None
    ) -> words.EnrolmentGranted:
        """Spend the code over a connection verified with that authority alone."""
        body = {
            "v": words.VERSION,
            "secret": offer.secret.hex(),
            "edge_id": self._edge_id,
            "version": self._version,
            "request_id": secrets.token_hex(16),
            "csr": asked.csr_pem if asked else None,
            # Who we were, for the cloud that knows us already; to no other.
            "proof": self.current.cloud_token
            if self.current and self.current.enrol_ca_pem == ca_pem
            else "",
        }
        tls = ssl.create_default_context(cadata=ca_pem)
        for left in reversed(range(TRIES)):
            try:
                answer = await request(
                    offer.enrol_host, offer.enrol_port, f"{words.PATH}/redeem", tls=tls, body=body
                )
            except (ConnectionError, TimeoutError, ssl.SSLEOFError):
                if not left:
                    raise
                await asyncio.sleep(AGAIN_S)
            else:
                return words.granted(
                    _ok(answer), edge_id=self._edge_id, certificate=asked is not None
                )
        raise AssertionError("the last try raises")

    async def _keep(
        self, offer: Offer, ca_pem: str, asked: SigningRequest | None, found: words.EnrolmentGranted
    ) -> Enrolled:
        self._hide(found.password)
        self._hide(found.cloud_token)
        enrolled = Enrolled(
            edge_id=self._edge_id,
            tenant=found.tenant,
            host=found.host,
            port=found.port,
            pool=found.pool,
            ca_pem=found.ca_pem or ca_pem,
            enrol_host=offer.enrol_host,
            enrol_port=offer.enrol_port,
            enrol_ca_pem=ca_pem,
            username=found.username,
            password=found.password,
            cloud_url=found.cloud_url,
            cloud_token=found.cloud_token,
        )
        return await self._save(enrolled, asked, found.certificate_pem)

    async def _save(
        self, enrolled: Enrolled, asked: SigningRequest | None, chain_pem: str
    ) -> Enrolled:
        try:
            identity = b""
            if asked is not None:
                life = await life_of(chain_pem, asked.key_pem)
                enrolled = replace(enrolled, begins=life.begins, ends=life.ends)
                identity = (asked.key_pem + chain_pem).encode()
            return await asyncio.to_thread(self._files.save, enrolled, identity_pem=identity)
        except (BadCertificate, NoKeys) as e:
            raise EnrolRefused(
                "BAD_ANSWER",
                f"the certificate the cloud gave cannot be used: {e}",
                "tell the cloud's operator",
            ) from None
        except OSError as e:
            fix = (
                "make room or correct who may write there, "
                "then ask for a new code: this one is spent"
            )
            raise EnrolRefused(
                "CANNOT_KEEP", f"the credentials cannot be kept: {said(e)}", fix
            ) from None

    # -------------------------------------------------------------- renewal

    async def run(self) -> None:
        """Renew the certificate at two thirds of its life, forever; without one only wait."""
        if self._trouble:
            self._tell(self._trouble)
        backoff = Backoff(self._chance, first_s=self._retry_s[0], most_s=self._retry_s[1])
        while True:
            self._changed.clear()
            await self._wait(await self._step(backoff))

    async def _step(self, backoff: Backoff) -> float:
        """Renew if it is time; return the seconds until the next look."""
        kept, now = self.current, self._clock.wall()
        if kept is None or not kept.identity or now < CLOCK_FLOOR:
            return LOOK_S
        due = words.renew_at(kept.begins, kept.ends)
        if now < due:
            self._tell("")
            return min(LOOK_S, due - now)
        try:
            with self._within(RENEW_S, "enrolment: renewing"):
                await self._renew(kept)
        except EnrolRefused as e:
            self._note_failure(kept, e, now)
            return max(self._retry_s[0] / 2, backoff.after(0.0))
        backoff.after(float("inf"))
        return self._retry_s[0] / 2  # not at once: a cloud's certificate may be due as it comes

    async def _renew(self, kept: Enrolled) -> None:
        """Ask for the next certificate, of a new key, with the present one as our passport."""
        async with self._busy:
            if self.current is not kept:
                return
            where = f"{kept.enrol_host}:{kept.enrol_port}"
            asked = await self._told(partial(ask, self._edge_id), "this machine")
            chain = await self._told(partial(self._ask_renewal, kept, asked), where)
            self.current = await self._save(kept, asked, chain)
        self._tell("")
        _log.info("this edge's certificate is renewed, until %s", words.day(self.current.ends))

    async def _ask_renewal(self, kept: Enrolled, asked: SigningRequest) -> str:
        try:
            tls = await asyncio.to_thread(self._files.context, kept, ca_pem=kept.enrol_ca_pem)
        except (OSError, ValueError) as e:
            raise EnrolRefused(
                "TLS_FILES",
                f"our own certificate cannot be read: {said(e)}",
                "enrol again: glassd up CODE",
            ) from None
        body = {"v": words.VERSION, "csr": asked.csr_pem}
        return words.renewed(
            _ok(
                await request(
                    kept.enrol_host, kept.enrol_port, f"{words.PATH}/renew", tls=tls, body=body
                )
            )
        )

    def _note_failure(self, kept: Enrolled, e: EnrolRefused, now: float) -> None:
        """Log a first failure as WARNING; alarm when it is final or time runs out."""
        _log.log(
            logging.DEBUG if self._trouble else logging.WARNING,
            "this edge's certificate is not renewed: %s",
            e,
        )
        self._trouble = str(e)
        if now >= kept.ends:
            self._tell(
                f"This edge's certificate ended {words.day(kept.ends)}; enrol again: glassd up CODE"
            )
        elif e.final or now >= words.worry_at(kept.begins, kept.ends):
            self._tell(
                f"This edge's certificate ends {words.day(kept.ends)} "
                f"and is not renewed: {e}; {e.fix}"
            )

    async def _wait(self, seconds: float) -> None:
        try:
            async with timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    def _tell(self, text: str) -> None:
        """Say what a person should do; "" takes it back."""
        self._trouble = self._trouble if text else ""
        if text == self._alarm:
            return
        self._alarm = text
        self._bus.publish(Alarmed(ALARM, text, over=not text))

    # -------------------------------------------------------------- what goes wrong

    async def _told(self, asking: Callable[[], Awaitable[_T]], where: str) -> _T:
        """Ask, when the clock is fit to judge certificates by; say in words what went wrong.
        Raise `EnrolRefused`.
        """
        wall = self._clock.wall()
        if wall < CLOCK_FLOOR:
            verdict = clock_wrong(wall)
            raise EnrolRefused(
                "CLOCK",
                verdict.detail,
                "set it, then again: timedatectl set-ntp true, or date -s",
                final=False,
            )
        try:
            return await asking()
        except NoKeys as e:
            raise EnrolRefused(
                "NO_KEYS", str(e), "see the log (journalctl -u glassd), then again", final=False
            ) from None
        except (OSError, NotHttp, words.BadAnswer) as e:
            _raise(e, where, wall)


def _raise(e: OSError | NotHttp | words.BadAnswer, where: str, wall: float) -> NoReturn:
    if not isinstance(e, OSError):
        raise EnrolRefused(
            "BAD_ANSWER",
            f"{where}: {said(e) if isinstance(e, ValueError) else e}",
            "ask whether the code is right",
            final=False,
        ) from None
    verdict = dated(of_os_error(e), wall)
    fix = _FIXES.get(verdict.fault, verdict.hint)
    raise EnrolRefused(
        verdict.fault.upper(), f"{where}: {verdict.detail}", fix, final=False
    ) from None


def _ok(answer: HttpAnswer) -> dict[str, object]:
    """Return the body of a 200. Raise `EnrolRefused` with the cloud's reason."""
    body = answer.json()
    if answer.status == 200:
        return body
    code, message = words.refusal(body)
    problem, fix = _REFUSED.get(
        code,
        (
            f"the cloud refuses ({answer.status}): {said(ValueError(message))}",
            "ask the cloud's operator",
        ),
    )
    raise EnrolRefused(
        code or "REFUSED", problem, fix, final=answer.status < 500 and answer.status != 429
    )
