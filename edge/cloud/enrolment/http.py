"""One HTTPS request to an enrolment endpoint, in JSON."""

import json
import ssl
from typing import Final

from edge.runtime import http_request
from edge.runtime.http_request import HttpAnswer, NotHttp

MAX_ANSWER: Final = 64 * 1024
"""Bytes: a certificate chain, an authority and a few words."""
REQUEST_S: Final = 20.0


def read_json(answer: HttpAnswer) -> dict[str, object]:
    """Read the body as a JSON object. Raise `NotHttp`."""
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        raise NotHttp(f"the answer ({answer.status}) is not JSON") from None
    if not isinstance(found, dict):
        raise NotHttp(f"the answer ({answer.status}) is not a JSON object")
    return found


async def request(
    host: str,
    port: int,
    path: str,
    *,
    tls: ssl.SSLContext,
    body: object | None = None,
    limit_s: float = REQUEST_S,
) -> HttpAnswer:
    """GET, or POST a JSON body. Raise OSError (ssl.SSLError, TimeoutError) and `NotHttp`."""
    sent = None if body is None else json.dumps(body).encode()
    return await http_request.request(
        host,
        port,
        path,
        tls=tls,
        most=MAX_ANSWER,
        limit_s=limit_s,
        method="GET" if body is None else "POST",
        headers={} if body is None else {"Content-Type": "application/json"},
        body=sent,
    )
