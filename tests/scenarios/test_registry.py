"""Story: the cloud's tools change, vanish, break or lie; the last good registry serves until a
better one is verified.
"""

import asyncio
import hashlib
import json
import sys

import pytest
import rfc8785

from tests.scenarios.network import Cable, web
from tests.scenarios.world import until, whole_world, world

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.usefixtures("child_reads_registries"),
]

CALC = "com.example.calc:evaluate"


def tool(name, **more):
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    return {"name": name, "description": f"does {name}", "inputSchema": schema, **more}


def document(*tools, package="com.test.shelf"):
    """A registry as a cloud serves it, hashed as the contract says: SHA-256 over the canonical
    JSON of `apps`.
    """
    apps = [
        {"packageName": package, "name": "Shelf", "hardwareRequirements": [], "tools": list(tools)}
    ]
    sha256 = hashlib.sha256(rfc8785.dumps(apps)).hexdigest()
    return {"version": f"1.0.{sha256[:8]}", "sha256": sha256, "apps": apps}


class Shelf:
    """Somebody's cloud: serves whatever registry is put on it, and counts who asks."""

    def __init__(self, found):
        self.found = found
        self.statuses = []

    def __call__(self, method, path, headers, body):
        etag = f'"{hashlib.sha256(json.dumps(self.found).encode()).hexdigest()[:16]}"'
        status = (
            404 if path != "/api/registry" else 304 if headers.get("if-none-match") == etag else 200
        )
        self.statuses.append(status)
        return (
            status,
            {"ETag": etag, "Content-Type": "application/json"},
            json.dumps(self.found).encode() if status == 200 else b"",
        )


def names(place):
    return {
        e.definition.name
        for e in place.daemon.registry.snapshot().entries()
        if e.definition.source.value == "cloud"
    }


def dropped(place):
    return place.daemon.status()["registry"]["dropped"]


async def start(place, url):
    await place.start_daemon(cloud={"url": url, "refresh_s": 0.2})


@pytest.mark.requirement("K5-etag")
async def test_an_unchanged_registry_is_not_sent_again(tmp_path, cloud):
    async with world(tmp_path) as place:
        place.cloud = cloud
        cable = Cable(int(cloud["http"].rpartition(":")[2]))
        await cable.plug_in()
        try:
            await start(place, f"http://127.0.0.1:{cable.port}")
            await until(lambda: b"HTTP/1.1 304" in cable.came_back, "not modified")
            assert cable.came_back.count(b"HTTP/1.1 200") == 1
            assert CALC in names(place)
            before = place.daemon.registry.snapshot()
            seen = cable.came_back.count(b"HTTP/1.1 304")
            await until(lambda: cable.came_back.count(b"HTTP/1.1 304") > seen, "and again")
            assert place.daemon.registry.snapshot() is before
            assert place.daemon.status()["registry"]["age_s"] < 5
        finally:
            await place.stop_daemon()
            await cable.pull_out()


async def test_a_tool_handed_in_at_the_console_is_callable_without_a_restart(tmp_path):
    def app(method, path, headers, body):
        asked = json.loads(body)
        found = {"success": True, "content": {"text": f"{asked['arguments']['who']} is welcome"}}
        return (
            (200, {"Content-Type": "application/json"}, json.dumps(found).encode())
            if path == "/tool"
            else (404, {}, b"")
        )

    greet = tool("greet")
    greet["inputSchema"] |= {"properties": {"who": {"type": "string"}}, "required": ["who"]}
    async with whole_world(tmp_path) as place, web(app) as address:
        assert (
            await place.call("com.test.door:greet", {"who": "Ada"})
        ).error.code == "TOOL_NOT_FOUND"
        version = place.daemon.registry.snapshot().version
        stored = await place.ask_cloud(
            "POST",
            "/api/apps/com.test.door/tools",
            {"name": "Door", "publicUrl": address, "tools": [greet]},
        )
        assert stored["tools"] == ["greet"]
        await place.heard("registry.synced", origin="cloud")
        assert place.daemon.registry.snapshot().version != version
        answer = await place.call("com.test.door:greet", {"who": "Ada"})
        assert answer.meta["delivery"] == "shown"
        assert place.lens() == ["Ada is welcome"]
        await place.ask_cloud("POST", "/api/apps/com.test.door/tools", {"tools": []})
        await until(lambda: "com.test.door:greet" not in names(place), "taken back")


@pytest.mark.requirement("K5-last-good")
async def test_without_the_cloud_at_start_the_last_good_registry_serves_and_shows_its_age(
    tmp_path, cloud
):
    async with whole_world(tmp_path, cloud=cloud) as place:
        known = names(place)
        await place.stop_daemon()
        place.mark()
        nobody = await unused_port()
        stored = place.folder / "state" / "registry" / "current.json"
        stored.write_bytes(
            stored.read_bytes().replace(cloud["http"].encode(), nobody.encode())
        )  # the same cloud, elsewhere
        await place.start_daemon(cloud={"url": nobody})
        assert names(place) == known
        await until(lambda: place.daemon.status()["registry"]["cloud"]["error"], "the failed sync")
        registry = place.daemon.status()["registry"]
        assert registry["origin"] == "disk"
        assert registry["age_s"] >= 0
        await until(
            lambda: place.daemon.uplink.status().up and place.daemon.link.status().ready,
            "uplink and glasses",
        )
        assert (await place.call(CALC, {"expression": "2*21"})).meta["delivery"] == "shown"


async def unused_port():
    """An address where nobody listens."""
    async with web(lambda *_: (404, {}, b"")) as address:
        return address


@pytest.mark.requirement("M-one-bad-tool")
async def test_one_bad_tool_is_dropped_with_its_reason_and_the_rest_serve(tmp_path):
    bad_schema = tool(
        "bad_schema", inputSchema={"type": "object", "properties": {"x": {"type": "strnig"}}}
    )
    shelf = Shelf(
        document(
            tool("good"), bad_schema, tool("bad:name"), {"name": "no_schema", "description": "x"}
        )
    )
    async with world(tmp_path) as place, web(shelf) as url:
        await start(place, url)
        await until(lambda: names(place), "the registry")
        in_force = {
            e.definition.name for e in place.daemon.registry.snapshot().entries() if not e.hidden
        }
        assert "com.test.shelf:good" in in_force
        assert not {n for n in in_force if "bad" in n or "no_schema" in n}
        told = "\n".join(dropped(place))
        assert "com.test.shelf:bad_schema" in told
        assert "strnig" in told
        assert "bad:name" in told
        assert "no_schema" in told
        assert "inputSchema" in told
        refused = await place.call("com.test.shelf:bad_schema", {"x": 1})
        assert refused.error.code in ("TOOL_UNAVAILABLE", "TOOL_NOT_FOUND")


async def test_a_registry_whose_hash_is_wrong_changes_nothing(tmp_path):
    shelf = Shelf(document(tool("honest")))
    async with world(tmp_path) as place, web(shelf) as url:
        await start(place, url)
        await until(lambda: names(place) == {"com.test.shelf:honest"}, "the registry")
        shelf.found = {**document(tool("forged")), "sha256": "0" * 64}
        await until(
            lambda: place.daemon.status()["registry"]["cloud"]["error"], "the lie is noticed"
        )
        assert names(place) == {"com.test.shelf:honest"}
        shelf.found = document(tool("honest"), tool("new"))
        await until(lambda: "com.test.shelf:new" in names(place), "the next honest one")


async def test_a_damaged_copy_falls_back_to_the_one_before_and_an_alarm_says_so(tmp_path):
    shelf = Shelf(document(tool("first")))
    async with world(tmp_path) as place:
        async with web(shelf) as url:
            await start(place, url)
            await until(lambda: names(place) == {"com.test.shelf:first"}, "the first registry")
            shelf.found = document(tool("first"), tool("second"))
            await until(lambda: "com.test.shelf:second" in names(place), "the second registry")
            stored = place.folder / "state" / "registry" / "current.json"
            await until(lambda: b'"second"' in stored.read_bytes(), "it is on disk")
        await place.stop_daemon()
        stored.write_bytes(stored.read_bytes().replace(b'"second"', b'"sec0nd"'))
        await start(place, url)
        assert names(place) == {"com.test.shelf:first"}
        assert "damaged" in place.daemon.status()["next_action"] or await alarmed(place)


async def alarmed(place):
    await until(lambda: "damaged" in place.daemon.status()["next_action"], "an alarm in status")
    return True


@pytest.mark.requirement("K1-sync")
async def test_on_demand_the_registry_is_fetched_now_and_a_cloud_that_is_away_changes_nothing(
    tmp_path,
):
    shelf = Shelf(document(tool("first")))
    async with world(tmp_path) as place:
        async with web(shelf) as url:
            await place.start_daemon(cloud={"url": url, "refresh_s": 3600})
            await until(lambda: names(place) == {"com.test.shelf:first"}, "the first registry")
            shelf.found = document(tool("first"), tool("second"))
            code, said = await sync(place)
            assert (code, said["cloud"]["version"], said["origin"]) == (
                0,
                shelf.found["version"],
                "cloud",
            )
            assert "com.test.shelf:second" in names(place)
        code, said = await sync(place)
        assert (code, said["error"]["code"]) == (1, "SYNC_FAILED")
        assert said["error"]["message"].startswith("the registry was not fetched")
        assert "com.test.shelf:second" in names(place)


async def sync(place):
    words = ("registry", "sync", "--socket", str(place.socket), "--json")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "edge.cli", *words, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    return process.returncode, json.loads(out)


async def test_without_a_cloud_a_sync_says_what_to_configure(tmp_path):
    async with world(tmp_path) as place:
        await place.start_daemon()
        code, said = await sync(place)
        assert (code, "cloud.url" in said["error"]["fix"]) == (1, True)
