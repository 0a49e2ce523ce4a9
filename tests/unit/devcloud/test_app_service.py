"""Submissions are stored first, seen by every process, and changed by their owners only."""

import hashlib
import logging

import pytest

from edge.devcloud.app_service import NoSuchApp, NotYours, hashed
from edge.devcloud.app_store import AppStoreFull
from edge.devcloud.definitions import check_submission
from edge.devcloud.registry import InstalledApp
from tests.unit.devcloud.parts import APP, READ, an_app_service

STARTED = InstalledApp("com.x.started", "S", (READ,), command=("run", "it"))


def new(package="com.n.new", **more):
    return check_submission(package, {"tools": [READ], "publicUrl": "http://n", **more})


@pytest.mark.requirement("S0-34")
async def test_a_submission_applies_in_every_process_and_after_a_restart(tmp_path):
    async with an_app_service(tmp_path, apps=[APP]) as a, an_app_service(tmp_path, apps=[APP]) as b:
        assert (
            await a.submit(
                new(
                    name="N",
                    apiKeyHash="12345678",
                    hardwareRequirements=[{"type": "IMU", "level": "OPTIONAL"}],
                )
            )
            is True
        )
        assert b.registry.app("com.n.new") is None
        await b.refresh()
        assert (b.registry.body, b.registry.app("com.n.new")) == (
            a.registry.body,
            a.registry.app("com.n.new"),
        )
        assert await b.submit(new()) is False
    async with an_app_service(tmp_path, apps=[APP]) as again:
        app = again.registry.app("com.n.new")
        assert (app.name, app.api_key_hash, app.hardware[0]["type"]) == ("N", "12345678", "IMU"), (
            "what an update did not say stays"
        )


async def test_without_changes_nothing_is_loaded(tmp_path):
    async with an_app_service(tmp_path) as service:
        service._store.load = pytest.fail
        await service.refresh()


async def test_when_the_disk_does_not_answer_what_is_known_stays(tmp_path, caplog):
    async with an_app_service(tmp_path, apps=[APP]) as service:
        await service._store._db.close()
        await service.refresh()
        assert service.registry.find("com.x.app:read") is not None
        assert "cannot be read" in caplog.text


@pytest.mark.parametrize("body", ["{", "[5]", '{"tools": [{}]}'])
async def test_an_unreadable_app_does_not_affect_the_others(tmp_path, body, caplog):
    async with an_app_service(tmp_path) as service:
        await service.submit(new())
        await service.submit(new("com.n.other"))
        await service._store._db.write(
            lambda db: (
                db.execute("UPDATE apps SET body = ? WHERE package = 'com.n.new'", (body,)).rowcount
            )
        )
    async with an_app_service(tmp_path) as service:
        assert [app is None for app in map(service.registry.app, ("com.n.new", "com.n.other"))] == [
            True,
            False,
        ]
        assert "com.n.new" in caplog.text


# ------------------------------------------------------------------ keys


@pytest.mark.requirement("S0-56")
async def test_a_key_is_returned_once_stored_as_a_hash_and_never_logged(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    async with an_app_service(tmp_path) as service:
        await service.submit(new())
        key = await service.issue_key("com.n.new")
        assert (key.startswith("gak_"), len(key) > 40) == (True, True)
        assert (
            service.registry.app("com.n.new").api_key_hash
            == hashed(key)
            == hashlib.sha256(key.encode()).hexdigest()
        )
    assert key not in caplog.text
    assert not any(
        key.encode() in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()
    )


@pytest.mark.requirement("I5-cloud-keys")
async def test_only_the_keys_holder_can_change_the_app(tmp_path):
    async with an_app_service(tmp_path) as service, an_app_service(tmp_path) as elsewhere:
        await service.submit(new())
        first = await service.issue_key("com.n.new")
        for wrong in ("", "gak_wrong", hashed(first)):
            with pytest.raises(NotYours, match="send it as X-App-API-Key"):
                await elsewhere.submit(new(name="Mine"), key=wrong)
            with pytest.raises(NotYours):
                await elsewhere.issue_key("com.n.new", key=wrong)
        assert await elsewhere.submit(new(name="Still mine"), key=first) is False
        second = await elsewhere.issue_key("com.n.new", key=first)
        with pytest.raises(NotYours):
            await service.submit(new(), key=first)
        await service.submit(new(), key=second)
        with pytest.raises(NotYours):
            await service.submit(new())
        assert service.registry.app("com.n.new").name == "Still mine"


@pytest.mark.parametrize("package", ["com.n.gone", "com.x.started"])
async def test_an_unknown_app_or_one_started_here_gets_no_key(tmp_path, package):
    async with an_app_service(tmp_path, apps=[STARTED]) as service:
        with pytest.raises(NoSuchApp, match=package):
            await service.issue_key(package)


# ------------------------------------------------------------------ people


class Wall:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.mark.requirement("I5-cloud-sessions")
async def test_a_session_lasts_its_time_in_every_process_and_can_be_ended(tmp_path):
    async with (
        an_app_service(tmp_path, session_s=60.0) as a,
        an_app_service(tmp_path, session_s=60.0) as b,
    ):
        wall = Wall()
        for service in (a, b):
            service._wall = wall
        assert await a.open_session("ann") == 60.0
        await b.refresh()
        assert (b.present("ann"), b.present("bob"), b.present("local")) == (
            True,
            False,
            True,
        )
        assert b.sessions() == {"ann": 60.0}
        wall.now += 60.0
        assert (a.present("ann"), a.sessions()) == (False, {})
        await a.open_session("ann")
        assert (
            await b.end_session("ann"),
            await b.end_session("ann"),
            b.present("ann"),
        ) == (True, False, False)
        await a.refresh()
        assert a.present("ann") is False


@pytest.mark.requirement("I5-cloud-sessions")
async def test_a_user_takes_an_app_off_and_puts_it_back(tmp_path):
    async with an_app_service(tmp_path, apps=[APP]) as service:
        assert service.has("ann", APP.package) is True
        await service.set_installed("ann", APP.package, installed=False)
        assert (service.has("ann", APP.package), service.has("bob", APP.package)) == (
            False,
            True,
        )
        await service.set_installed("ann", APP.package, installed=True)
        assert service.has("ann", APP.package) is True
        with pytest.raises(NoSuchApp, match=r"com\.n\.gone not found"):
            await service.set_installed("ann", "com.n.gone", installed=False)


async def test_sessions_are_limited_and_expired_ones_make_room(tmp_path, monkeypatch):
    monkeypatch.setattr("edge.devcloud.app_store.MAX_SESSIONS", 1)
    async with an_app_service(tmp_path, session_s=60.0) as service:
        service._wall = Wall()
        await service.open_session("ann")
        await service.open_session("ann")
        with pytest.raises(AppStoreFull, match="sessions: there are 1 already"):
            await service.open_session("bob")
        service._wall.now += 61.0
        await service.open_session("bob")


async def test_only_so_many_apps_are_taken_off(tmp_path, monkeypatch):
    monkeypatch.setattr("edge.devcloud.app_store.MAX_REMOVED", 0)
    async with an_app_service(tmp_path, apps=[APP]) as service:
        with pytest.raises(AppStoreFull, match="removed"):
            await service.set_installed("ann", APP.package, installed=False)
