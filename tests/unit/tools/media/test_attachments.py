"""Photos and sounds in results: a link for the cloud that takes uploads, else inline."""

import asyncio
import base64
import contextlib
import hashlib
import json

import pytest

from edge.tools.cloud_http import CloudHttp
from edge.tools.media import attachments
from edge.tools.media.attachments import MOST_INLINE, attach
from tools_cache.api.tool import CallOrigin, ErrorCode, ToolFailure

pytestmark = pytest.mark.enable_socket

PHOTO = b"\xff\xd8 a photo \xff\xd9"
SILENT = object()
HASH = hashlib.sha256(PHOTO).hexdigest()


class Server:
    """An HTTP server that answers each request with the next of `answers`: (status, body), None to
    hang up, or SILENT.
    """

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []
        self.serving = []

    async def serve(self, reader, writer):
        self.serving.append(asyncio.current_task())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
        body = await reader.readexactly(int(headers["content-length"]))
        self.asked.append((first, headers, body))
        answer = self.answers.pop(0)
        if answer is SILENT:
            await reader.read()
        elif answer is not None:
            status, text = answer
            writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, len(text)))
            writer.write(text)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@contextlib.asynccontextmanager
async def cloud(*answers):
    server = Server(*answers)
    async with await asyncio.start_server(server.serve, "127.0.0.1") as listening:
        port = listening.sockets[0].getsockname()[1]
        yield server, CloudHttp(f"http://127.0.0.1:{port}/base", token="secret", user_id="ada")
        await asyncio.gather(*server.serving)


def said(url):
    return json.dumps({"url": url}).encode()


async def attached(source, data=PHOTO, origin=CallOrigin.CLOUD, kind="image/jpeg"):
    async with asyncio.timeout(20):
        return await attach(data, kind, origin=origin, cloud=source)


INLINE = {"type": "image", "data": base64.b64encode(PHOTO).decode(), "mimeType": "image/jpeg"}


async def test_the_cloud_gets_a_link_to_what_was_uploaded():
    async with cloud((201, said("https://files.example/a"))) as (server, source):
        assert await attached(source) == {
            "type": "resource_link",
            "uri": "https://files.example/a",
            "name": f"image-{HASH[:12]}",
            "mimeType": "image/jpeg",
            "size": len(PHOTO),
        }
        (first, headers, body), *more = server.asked
    assert (first, body, more) == (f"PUT /base/api/uploads/{HASH} HTTP/1.1", PHOTO, [])
    assert headers["content-type"] == "image/jpeg"
    assert (headers["x-user-id"], headers["authorization"]) == ("ada", "Bearer secret")


async def test_a_path_is_one_at_the_cloud():
    async with cloud((200, said("/api/uploads/1"))) as (_, source):
        assert (await attached(source))["uri"] == source.url.removesuffix(
            "/base"
        ) + "/api/uploads/1"


@pytest.mark.parametrize("origin", [each for each in CallOrigin if each is not CallOrigin.CLOUD])
async def test_all_other_callers_get_it_inline(origin):
    async with cloud() as (server, source):
        assert await attached(source, origin=origin) == INLINE
        assert server.asked == []


async def test_a_sound_is_a_block_of_its_own_kind():
    block = await attached(None, b"RIFF", kind="audio/wav")
    assert (block["type"], block["mimeType"]) == ("audio", "audio/wav")


@pytest.mark.parametrize(
    "answer",
    [
        (404, said("/a")),
        (405, said("/a")),
        (501, said("/a")),
        (500, said("/a")),
        (413, said("/a")),
        (301, said("/a")),
        (201, b"no JSON"),
        (201, b"[]"),
        (201, b"{}"),
        (201, b'{"url": 7}'),
        (201, said("javascript:alert(1)")),
        (201, said("https://files.example/" + "x" * 2000)),
        (201, b" " * 9000),
    ],
)
async def test_a_cloud_that_does_not_take_it_gets_it_inline(answer):
    async with cloud(answer) as (_, source):
        assert await attached(source) == INLINE


async def test_a_lost_connection_is_tried_once_more():
    async with cloud(None, (200, said("/a"))) as (server, source):
        assert (await attached(source))["type"] == "resource_link"
        assert len(server.asked) == 2
    async with cloud(None, None) as (server, source):
        assert await attached(source) == INLINE
        assert len(server.asked) == 2


async def test_a_cloud_that_never_answers_is_left(monkeypatch, caplog):
    monkeypatch.setattr(attachments, "UPLOAD_S", 0.2)

    async with cloud(SILENT) as (_, source):
        assert await attached(source) == INLINE
    assert "did not take it in 0.2 s" in caplog.text


async def test_certificates_that_cannot_be_read_are_named(caplog):
    def context():
        raise FileNotFoundError("edge.pem")

    assert await attached(CloudHttp("https://127.0.0.1:1", tls=context)) == INLINE
    assert "our certificates cannot be read: edge.pem; enrol again" in caplog.text
    assert "secret" not in caplog.text


async def test_what_fits_no_result_says_so():
    large = bytes(MOST_INLINE + 1)
    with pytest.raises(ToolFailure) as failed:
        await attached(None, large)
    assert failed.value.error.code is ErrorCode.NOT_ACCEPTED
    assert failed.value.error.suggestion == "Ask for a smaller or shorter one"
    async with cloud((503, b"")) as (_, source):
        with pytest.raises(ToolFailure, match="could not be uploaded: the cloud answered 503"):
            await attached(source, large)
    async with cloud((200, said("/a"))) as (_, source):
        assert (await attached(source, large))["size"] == len(large)
