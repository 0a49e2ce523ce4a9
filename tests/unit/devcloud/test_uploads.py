"""Uploads: what an edge stores, and who gets it, for how long."""

import contextlib
import hashlib

import httpx
import pytest
from starlette.applications import Starlette

from edge.devcloud import uploads
from edge.devcloud.database import open_shared
from edge.devcloud.http.auth import Authentication
from edge.devcloud.http.guard import guarded
from edge.devcloud.http.uploads_api import UploadsApi
from edge.devcloud.uploads import MOST_BYTES, Upload, Uploads
from tests.unit.devcloud.parts import an_app_service

PHOTO = b"\xff\xd8 a photo \xff\xd9"
KIND = {"X-User-Id": "local", "Content-Type": "image/jpeg"}


def path(data):
    return f"/api/uploads/{hashlib.sha256(data).hexdigest()}"


@contextlib.asynccontextmanager
async def cloud(folder, **options):
    async with an_app_service(folder) as service:
        db = await open_shared(folder / "uploads.db")
        auth = Authentication(service, **options)
        app = guarded(Starlette(routes=UploadsApi(auth, Uploads(db)).routes()), ("cloud",))
        transport = httpx.ASGITransport(app)
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://cloud") as client:
                client.service = service
                yield client
        finally:
            await db.close()


async def test_a_photo_is_stored_and_returned_to_its_user(tmp_path):
    async with cloud(tmp_path) as c:
        stored = await c.put(path(PHOTO), content=PHOTO, headers=KIND)
        assert (stored.status_code, stored.json()) == (201, {"url": path(PHOTO)})
        found = await c.get(stored.json()["url"], headers=KIND)
        assert (found.status_code, found.content) == (200, PHOTO)
        assert found.headers["content-type"] == "image/jpeg"
        assert found.headers["content-disposition"] == "attachment"
        assert found.headers["x-content-type-options"] == "nosniff"
        assert (await c.put(path(PHOTO), content=PHOTO, headers=KIND)).status_code == 201


async def test_nobody_else_gets_it(tmp_path):
    async with cloud(tmp_path) as c:
        await c.service.open_session("eve")
        await c.put(path(PHOTO), content=PHOTO, headers=KIND)
        assert (await c.get(path(PHOTO), headers={"X-User-Id": "eve"})).status_code == 404
        assert (await c.get(path(PHOTO))).status_code == 401


async def test_without_the_token_nothing_is_stored_or_read(tmp_path):
    async with cloud(tmp_path, token="secret") as c:
        assert (await c.put(path(PHOTO), content=PHOTO, headers=KIND)).status_code == 401
        known = {**KIND, "Authorization": "Bearer secret"}
        assert (await c.put(path(PHOTO), content=PHOTO, headers=known)).status_code == 201
        assert (await c.get(path(PHOTO), headers=KIND)).status_code == 401


@pytest.mark.parametrize(
    ("where", "data", "kind", "status", "words"),
    [
        (path(PHOTO), PHOTO + b"!", "image/jpeg", 400, "SHA-256"),
        (path(b""), b"", "image/jpeg", 400, "empty"),
        (path(PHOTO), PHOTO, "text/html", 415, "image/ or audio/"),
        (path(PHOTO), PHOTO, "", 415, "image/ or audio/"),
        (path(bytes(MOST_BYTES + 1)), bytes(MOST_BYTES + 1), "audio/wav", 413, "larger than"),
    ],
)
async def test_a_bad_upload_is_refused_with_its_reason(tmp_path, where, data, kind, status, words):
    async with cloud(tmp_path) as c:
        headers = {"X-User-Id": "local", "Content-Type": kind}
        refused = await c.put(where, content=data, headers=headers)
        assert refused.status_code == status
        assert words in refused.json()["error"]["message"]
        assert (await c.get(where, headers=KIND)).status_code == 404


async def test_only_an_upload_may_be_something_else_than_json(tmp_path):
    async with cloud(tmp_path) as c:
        for method, where in (("PUT", "/devcloud/sessions/eve"), ("POST", path(PHOTO))):
            refused = await c.request(method, where, content=PHOTO, headers=KIND)
            assert refused.status_code == 415


async def test_an_upload_ends_after_a_day(tmp_path, monkeypatch):
    db = await open_shared(tmp_path / "uploads.db")
    now = 1_800_000_000.0
    monkeypatch.setattr(uploads.time, "time", lambda: now)
    store = Uploads(db)
    await store.put("ada", "a", Upload("image/jpeg", PHOTO))
    now += uploads.KEEP_S - 1
    assert await store.find("ada", "a") == Upload("image/jpeg", PHOTO)
    now += 2
    assert await store.find("ada", "a") is None
    await store.put("ada", "b", Upload("image/jpeg", PHOTO))
    rows = await db.read(lambda one: one.execute("SELECT sha256 FROM uploads").fetchall())
    assert [row["sha256"] for row in rows] == ["b"]
    await db.close()


async def test_the_oldest_go_when_there_are_too_many(tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "MOST_ALL_BYTES", 2 * len(PHOTO))
    db = await open_shared(tmp_path / "uploads.db")
    store = Uploads(db)
    for name in ("a", "b", "a", "c"):
        await store.put("ada", name, Upload("image/jpeg", PHOTO))
    left = [name for name in "abc" if await store.find("ada", name) is not None]
    assert left == ["a", "c"], "the first one was sent again, and so is newer"
    await db.close()
