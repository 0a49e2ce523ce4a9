"""HTTP endpoints for enrolment (docs/enrolment.md), and for this cloud's operator to make codes and
list edges.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from edge.devcloud.enrolment.pki import BadRequest
from edge.devcloud.enrolment.service import CODE_S, Credentials, EnrolmentRefused, EnrolmentService
from edge.devcloud.http.auth import Refusal, answer, read_json
from edge.devcloud.http.guard import PEER
from tools_cache.api.tool import Json

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

log = logging.getLogger(__name__)

VERSION: Final = 1
MAX_BODY: Final = 16 * 1024
LEAST_CODE_S: Final = 1.0
MOST_CODE_S: Final = 7 * 86_400.0
_EDGE_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
"""Valid in a topic, in Mosquitto's files, and as a certificate's name."""
Endpoint = Callable[[Mapping[str, Any], "Request"], Awaitable[Mapping[str, Json]]]


@dataclass(frozen=True, slots=True)
class EnrolmentPlace:
    """Where enrolled edges connect: `broker_port` with a certificate, `password_port` with a
    password.
    """

    host: str
    broker_port: int
    password_port: int
    tenant: str
    pool: str
    url: str
    ca_pem: str


class EnrolApi:
    """`routes()` for a Starlette application. `joined` is called after each new edge, so that the
    broker accepts it.
    """

    def __init__(
        self,
        enrolment: EnrolmentService,
        place: EnrolmentPlace,
        *,
        code: Callable[[float, str], str],
        joined: Callable[[], Awaitable[None]],
    ) -> None:
        self._enrolment = enrolment
        self._place = place
        self._code = code
        self._joined = joined
        self._one = asyncio.Lock()

    def routes(self) -> "list[Route]":
        from starlette.routing import Route  # noqa: PLC0415 - heavy, and only the server needs it

        return [
            Route("/enrol/v1/ca", self._ca, methods=["GET"]),
            Route("/enrol/v1/redeem", self._with_body(self._redeem), methods=["POST"]),
            Route("/enrol/v1/renew", self._with_body(self._renew), methods=["POST"]),
            Route("/devcloud/codes", self._with_body(self._make_code), methods=["POST"]),
            Route(
                "/devcloud/edges/{edge_id}/revoke", self._with_body(self._revoke), methods=["POST"]
            ),
        ]

    async def _ca(self, _: "Request") -> "Response":
        from starlette.responses import Response  # noqa: PLC0415 - see routes()

        return Response(self._place.ca_pem, media_type="application/x-pem-file")

    def _with_body(self, endpoint: Endpoint) -> "Callable[[Request], Awaitable[Response]]":
        async def served(request: "Request") -> "Response":
            try:
                body = await read_json(request, MAX_BODY, _invalid)
                if not isinstance(body, dict):
                    raise _invalid("body: must be an object")
                return answer(dict(await endpoint(body, request)))
            except Refusal as e:
                refusal = e
            except EnrolmentRefused as e:
                refusal = Refusal.of(e.status, e.code, str(e))
            except BadRequest as e:
                refusal = _invalid(str(e))
            return answer(refusal.body, status=refusal.status)

        return served

    # -------------------------------------------------------------- edges

    async def _redeem(self, body: Mapping[str, Any], _: "Request") -> Mapping[str, Json]:
        _check_version(body)
        edge_id = _text(body, "edge_id")
        if not _EDGE_ID.fullmatch(edge_id):
            raise _invalid("edge_id: may hold letters, digits and . _ - only, at most 63")
        try:
            secret = bytes.fromhex(_text(body, "secret"))
        except ValueError:
            raise _invalid("secret: must be hexadecimal") from None
        request_id, csr, proof = _text(body, "request_id"), body.get("csr"), body.get("proof") or ""
        if csr is not None and not isinstance(csr, str):
            raise _invalid("csr: must be a PEM text, or null for a password")
        redeem = partial(
            self._enrolment.redeem, request_id=request_id, csr_pem=csr, proof=str(proof)
        )
        async with self._one:
            credentials = await asyncio.to_thread(redeem, secret, edge_id)
            await self._joined()
        log.info("edge %s enrolled", edge_id)
        return self._answer(edge_id, credentials)

    def _answer(self, edge_id: str, given: Credentials) -> Mapping[str, Json]:
        p, port = self._place, self._place.password_port
        proof: dict[str, Json] = {"username": given.username, "password": given.password}
        if given.certificate:
            proof, port = {"certificate": given.certificate}, p.broker_port
        return {
            "v": VERSION,
            "edge_id": edge_id,
            "tenant": p.tenant,
            "pool": p.pool,
            "broker": {"host": p.host, "port": port, "ca": p.ca_pem},
            "cloud": {"url": p.url, "token": given.token},
            **proof,
        }

    async def _renew(self, body: Mapping[str, Any], request: "Request") -> Mapping[str, Json]:
        _check_version(body)
        peer = request.scope.get(PEER)
        if not isinstance(peer, bytes):
            raise Refusal.of(401, "NO_CERTIFICATE", "Connect with the certificate to renew")
        csr = _text(body, "csr", most=MAX_BODY)
        async with self._one:
            certificate = await asyncio.to_thread(self._enrolment.renew, peer, csr)
        return {"v": VERSION, "certificate": certificate}

    # -------------------------------------------------------------- for the operator

    async def _make_code(self, body: Mapping[str, Any], _: "Request") -> Mapping[str, Json]:
        """`{life_s?, edge_id?}` → `{code, expires_in_s}`; `edge_id`: for that edge only, even if it
        is already enrolled.
        """
        life_s = body.get("life_s", CODE_S)
        number = isinstance(life_s, int | float) and not isinstance(life_s, bool)
        if not (number and LEAST_CODE_S <= life_s <= MOST_CODE_S):
            raise _invalid(f"life_s: must be {LEAST_CODE_S:g} to {MOST_CODE_S:g}")
        edge_id = body.get("edge_id", "")
        if not isinstance(edge_id, str) or (edge_id and not _EDGE_ID.fullmatch(edge_id)):
            raise _invalid("edge_id: may hold letters, digits and . _ - only, at most 63")
        async with self._one:  # a code that is being redeemed writes the same document in a thread
            code = await asyncio.to_thread(self._code, float(life_s), edge_id)
        return {"code": code, "expires_in_s": life_s}

    async def _revoke(self, _: Mapping[str, Any], request: "Request") -> Mapping[str, Json]:
        """Revoke an edge's credentials."""
        async with self._one:
            if not self._enrolment.revoke(request.path_params["edge_id"]):
                raise Refusal.of(404, "NOT_FOUND", "There is no such edge")
            await self._joined()
        return {"revoked": True}


def _check_version(body: Mapping[str, Any]) -> None:
    if body.get("v") != VERSION:
        raise _invalid(f"v: must be {VERSION}")


def _text(body: Mapping[str, Any], key: str, *, most: int = 256) -> str:
    value = body.get(key)
    if not isinstance(value, str) or not 0 < len(value) <= most:
        raise _invalid(f"{key}: must be text of at most {most} characters")
    return value


def _invalid(message: str) -> Refusal:
    return Refusal.of(400, "INVALID_REQUEST", message)
