"""Photos and sounds in results: uploaded for the cloud, inline for all others. Imported at the
first one.
"""

import base64
import hashlib
import json
import logging
from typing import Final
from urllib.parse import urljoin, urlsplit

from edge.runtime.http_request import HttpAnswer, NotHttp
from edge.tools.cloud_http import CertificatesUnreadable, CloudHttp, reason
from firmware_bridge.deadlines import timeout
from tools_cache.api.handed import Json
from tools_cache.api.tool import CallOrigin, ErrorCode, ToolFailure

MOST_INLINE: Final = 130_000
"""Bytes; more does not fit a result (192 KiB) as base64."""
UPLOAD_S: Final = 20.0
"""Seconds for an upload and its second try together: 2 MiB take 17 s at 1 Mbit/s."""
MOST_ANSWER: Final = 8 * 1024
MOST_URL: Final = 2000
_NO_SUCH_PATH: Final = frozenset({404, 405, 501})
_log: Final = logging.getLogger(__name__)


class _NotUploaded(Exception):
    """The cloud did not take it; the text says why."""


async def attach(
    data: bytes, kind: str, *, origin: CallOrigin, cloud: CloudHttp | None
) -> dict[str, Json]:
    """Return the content block of a photo or sound. `kind`: its MIME type, of image or audio. For
    the cloud it is a link to an upload, if this cloud takes uploads. Raises `ToolFailure`
    NOT_ACCEPTED: too large for a result.
    """
    why, block = "", kind.partition("/")[0]
    if origin is CallOrigin.CLOUD and cloud is not None:
        try:
            sha256 = hashlib.sha256(data).hexdigest()
            url = await _upload(cloud, f"uploads/{sha256}", data, kind)
        except _NotUploaded as e:
            why = str(e)
            _log.warning("a photo or sound of %d bytes is not uploaded: %s", len(data), e)
        else:
            return {
                "type": "resource_link",
                "uri": url,
                "name": f"{block}-{sha256[:12]}",
                "mimeType": kind,
                "size": len(data),
            }
    if len(data) > MOST_INLINE:
        detail = f", and it could not be uploaded: {why}" if why else ""
        raise ToolFailure.of(
            ErrorCode.NOT_ACCEPTED,
            f"It has {len(data)} bytes; a result holds {MOST_INLINE}{detail}",
            suggestion="Ask for a smaller or shorter one",
        )
    encoded = base64.b64encode(data).decode()
    return {"type": block, "data": encoded, "mimeType": kind}


async def _upload(cloud: CloudHttp, path: str, data: bytes, kind: str) -> str:
    """Return its address. The path has its hash, so a second try stores nothing twice."""
    try:
        async with timeout(UPLOAD_S):
            try:
                answer = await _put(cloud, path, data, kind)
            except ConnectionError:
                answer = await _put(cloud, path, data, kind)
    except TimeoutError:
        raise _NotUploaded(f"the cloud did not take it in {UPLOAD_S:g} s") from None
    except CertificatesUnreadable as e:
        raise _NotUploaded(f"{e}; enrol again: glassd up CODE") from None
    except (OSError, NotHttp, ValueError) as e:
        raise _NotUploaded(f"the cloud cannot be reached: {reason(e)}") from None
    return _url(cloud.url, answer)


async def _put(cloud: CloudHttp, path: str, data: bytes, kind: str) -> HttpAnswer:
    return await cloud.request(
        path,
        method="PUT",
        headers={"Content-Type": kind},
        body=data,
        most=MOST_ANSWER,
        limit_s=UPLOAD_S,
    )


def _url(base: str, answer: HttpAnswer) -> str:
    """Return the address that the cloud answered; a path is one at the cloud."""
    if answer.status in _NO_SUCH_PATH:
        raise _NotUploaded("this cloud takes no uploads")
    if answer.status not in (200, 201):
        raise _NotUploaded(f"the cloud answered {answer.status} to /api/uploads")
    try:
        url: str = urljoin(base.rstrip("/") + "/", json.loads(answer.body)["url"])
        good = urlsplit(url).scheme in ("http", "https") and len(url) <= MOST_URL
    except (ValueError, KeyError, TypeError, RecursionError):
        good = False
    if not good:
        raise _NotUploaded("the cloud did not answer with the url of the upload")
    return url
