"""`POST /v1/enrol`: enrol with a code from a cloud's operator. The code is a secret: it is neither
logged nor returned.
"""

from typing import Final

from edge.control import requests
from edge.control.dependencies import Enrol
from edge.control.http import Reply, Request, RequestRefused
from edge.ports import EnrolRefused

MAX_CODE: Final = 2000


async def enrolled(enrol: Enrol | None, request: Request) -> Reply:
    """Serve `{code}`; the answer shows no secret."""
    code = requests.text(requests.json_object(request, ("code",)), "code", most=MAX_CODE)
    if enrol is None:
        raise RequestRefused(
            501, "UNSUPPORTED", "this daemon cannot enrol", "set [uplink] host in its configuration"
        )
    try:
        return Reply(200, dict(await enrol(code)))
    except EnrolRefused as e:
        raise RequestRefused(409 if e.final else 502, e.code, str(e), e.fix) from None
