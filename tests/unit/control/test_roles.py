"""What each client of the control API may do: the two sockets decide."""

import asyncio
import errno
import grp
import json
import os
import shutil
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from edge.control.sockets import UNMAPPED
from tests.unit.control.house import ASKED, DEADLINE_S, open_house, row
from tools_cache.api.tool import ToolResponse

pytestmark = pytest.mark.enable_socket

OWNERS = (
    ("PUT", "/v1/tools", {"tool": "notes:add", "enabled": False}),
    ("POST", "/v1/confirm", {"token": "tok-1", "allow": True}),
    ("POST", "/v1/confirm", {"call_id": "id-1", "allow": True, "grant": "always"}),
    ("PUT", "/v1/grants", {"tool": "cal:add", "grant": "always"}),
    ("DELETE", "/v1/grants?tool=cal:add", None),
    ("POST", "/v1/say", {"text": "yes"}),
    ("GET", "/v1/scan?seconds=1", None),
    ("GET", "/v1/packets", None),
    ("POST", "/v1/pairing", {}),
    ("POST", "/v1/pairing/answer", {"same": True}),
    ("DELETE", "/v1/pairing", None),
    ("DELETE", "/v1/bonds", None),
    ("DELETE", "/v1/bonds/AA", None),
    ("POST", "/v1/enrol", {"code": "GLASSD1-X"}),
    ("POST", "/v1/registry/sync", {}),
    ("POST", "/v1/servers/files/refresh", {}),
    ("POST", "/v1/servers/files/authorize", {"code": "x"}),
    ("POST", "/v1/call", {"tool": "cal:add", "confirm": "tok-1"}),
    ("POST", "/v1/call", {"tool": "cal:add", "confirmation_token": "tok-1"}),
)
"""What decides for the wearer."""
CALLERS = {
    "POST /v1/call",
    r"POST /v1/calls/([^/]{1,64})/cancel",
    r"POST /v1/calls/([^/]{1,64})/result",
}
"""All that is not reading and that a caller may do."""


@pytest.mark.parametrize(("method", "path", "body"), OWNERS)
@pytest.mark.requirement("CONSENT-roles")
async def test_what_decides_for_the_wearer_is_refused_on_the_control_socket(
    tmp_path, method, path, body
):
    async with open_house(tmp_path, owner_group=group_of_ours()) as house:
        status, answer = await house.ask(method, path, body)
        assert (status, answer["error"]["code"]) == (403, "PERMISSION")
        assert f"for the group {group_of_ours()}" in answer["error"]["message"]
        assert (
            f"sudo usermod -aG {group_of_ours()} $USER, then log in again" in answer["error"]["fix"]
        )
        assert (
            house.calls.decided,
            house.calls.seen,
            house.calls.begun,
            house.said,
            house.confirmations.kept,
        ) == ([], [], [], [], {})
        assert (await house.ask_as_owner(method, path, body))[0] != 403


async def test_only_listed_changes_are_for_callers(tmp_path):
    """A new route that changes something is for the owner, unless it is listed here."""
    async with open_house(tmp_path) as house:
        table = house.server._entrances[0].routes._table
        open_to_callers = {
            f"{method} {pattern.pattern}"
            for may, method, pattern, _ in table
            if may.value == "control" and method != "GET"
        }
    assert open_to_callers == CALLERS


@pytest.mark.parametrize("group", ["", "no-such-group"])
async def test_without_a_group_the_refusal_names_none(tmp_path, group):
    async with open_house(tmp_path, owner_group=group) as house:
        _, answer = await house.ask("POST", "/v1/confirm", {"token": "tok-1", "allow": True})
    assert "for the daemon's own user alone" in answer["error"]["message"]
    assert "usermod" not in answer["error"]["fix"]


# ------------------------------------------------------------------ no token for who asks


@pytest.mark.parametrize(
    "how", [{"ask": "return"}, {"wait": False}, {}, {"wait": "delivery"}, {"progress": True}]
)
@pytest.mark.requirement("CONSENT-roles")
async def test_only_the_owner_sees_the_token_of_a_question(tmp_path, how):
    async with open_house(tmp_path) as house:
        house.calls.asked["cal:add"] = house.calls.answers["cal:add"] = ASKED
        body = json.dumps({"tool": "cal:add", **how}).encode()
        head = (
            "POST /v1/call HTTP/1.1\r\nHost: x\r\nConnection: "
            f"close\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()
        callers, owners = (
            await house.exchange(head + body, eof=False),
            await house.exchange(head + body, eof=False, path=house.owners),
        )
    assert b"CONFIRMATION_REQUIRED" in callers
    assert b"Create calendar event with 2 attendees" in callers
    assert b"tok-1" not in callers
    assert b"tok-1" in owners


async def test_open_questions_show_no_token_and_are_decided_by_call_id(tmp_path):
    async with open_house(tmp_path) as house:
        house.calls.asked["cal:add"] = ASKED
        await house.ask(
            "POST",
            "/v1/call",
            {"tool": "cal:add", "args": {"title": "x"}, "ask": "return", "origin": "mcp"},
        )
        _, told = await house.ask("GET", "/v1/confirm")
        ((question,),) = told.values()
        assert (question["tool"], question["args"], question["asked_by"], "token" in question) == (
            "cal:add",
            {"title": "x"},
            "mcp",
            False,
        )
        status, envelope = await house.ask_as_owner(
            "POST", "/v1/confirm", {"call_id": question["call_id"], "allow": True}
        )
        assert (status, envelope["data"]) == (200, {"event": 1})
        assert (await house.ask("GET", "/v1/confirm"))[1] == {"questions": []}


@pytest.mark.parametrize(
    "body",
    [{"allow": True}, {"allow": True, "token": "t", "call_id": "c"}, {"allow": True, "call_id": 5}],
)
async def test_a_decision_names_one_question(tmp_path, body):
    async with open_house(tmp_path) as house:
        status, answer = await house.ask_as_owner("POST", "/v1/confirm", body)
    assert (status, answer["error"]["code"], house.calls.decided) == (400, "INVALID_REQUEST", [])


# ------------------------------------------------------------------ other people's calls


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [("cli", True), ("mcp", True), ("voice", False), ("glasses", False), ("cloud", False)],
)
@pytest.mark.requirement("CONSENT-roles")
async def test_a_caller_cancels_only_calls_of_the_control_api(tmp_path, origin, allowed):
    async with open_house(tmp_path) as house:
        house.store.rows["c7"] = row("c7", state="RUNNING", request={"origin": origin})
        house.calls.running["c7"] = None
        status, _ = await house.ask("POST", "/v1/calls/c7/cancel")
        assert (status, house.calls.running["c7"] is not None) == (
            (200, True) if allowed else (403, False)
        )
        assert (await house.ask_as_owner("POST", "/v1/calls/c7/cancel"))[0] == 200


@pytest.mark.parametrize("origin", ["voice", "glasses", "wearer", "cloud"])
async def test_a_caller_cannot_call_as_the_wearer(tmp_path, origin):
    async with open_house(tmp_path) as house:
        status, answer = await house.ask(
            "POST", "/v1/call", {"tool": "notes:add", "origin": origin}
        )
        assert (status, house.calls.seen) == (400, [])
    assert "origin" in answer["error"]["message"]


@pytest.mark.requirement("CONSENT-roles")
async def test_a_caller_does_not_answer_a_question_to_the_wearer(tmp_path):
    async with open_house(tmp_path) as house:
        house.store.rows |= {
            "c8": row("c8", state="PENDING", route="wearer"),
            "c9": row("c9", state="PENDING", route="local"),
        }
        assert (await house.ask("POST", "/v1/calls/c8/result", {"data": {"answer": "yes"}}))[
            0
        ] == 403
        assert house.calls.submitted == []
        assert (await house.ask("POST", "/v1/calls/c9/result", {"data": 5}))[0] == 200
        assert (
            await house.ask_as_owner("POST", "/v1/calls/c8/result", {"data": {"answer": "yes"}})
        )[0] == 200


# ------------------------------------------------------------------ the socket files


def group_of_ours():
    return grp.getgrgid(os.getgid()).gr_name


@pytest.mark.requirement("CONSENT-roles")
async def test_without_its_group_the_owners_socket_is_for_one_user(tmp_path):
    """The process's own group must not get in by chance: under systemd it is that of the
    callers.
    """
    async with open_house(tmp_path, group=group_of_ours(), owner_group="no-such-group") as house:
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (house.path, house.owners)]
    assert modes == [0o660, 0o600]


async def test_with_its_group_the_owners_socket_is_for_that_group(tmp_path):
    async with open_house(tmp_path, owner_group=group_of_ours()) as house:
        assert stat.S_IMODE(house.owners.stat().st_mode) == 0o660


def forbidden_chown(*_):
    """Fail as under the syscall filter of systemd."""
    raise PermissionError(errno.EPERM, "Operation not permitted")


@pytest.fixture
def setgid_folder(tmp_path):
    """The folder that the unit makes for the owner's socket."""
    folder = tmp_path / "owner"
    folder.mkdir()
    folder.chmod(0o2700)
    return folder


@pytest.mark.requirement("CONSENT-roles")
@pytest.mark.parametrize("shown", ["as it is", "as the unit's user namespace shows it"])
async def test_a_setgid_folder_of_its_name_gives_the_socket_its_group(
    tmp_path, setgid_folder, monkeypatch, shown
):
    if shown != "as it is":
        if os.geteuid() != 0:
            pytest.skip("only root can give a folder to the group that stands for all unknown ones")
        os.chown(setgid_folder, -1, UNMAPPED)
        setgid_folder.chmod(0o2700)
    monkeypatch.setattr(os, "chown", forbidden_chown)
    (setgid_folder / "owner.sock").touch()  # left by a daemon that was killed
    async with open_house(tmp_path, owner_group=group_of_ours()) as house:
        assert (house.owners.stat().st_gid, stat.S_IMODE(house.owners.stat().st_mode)) == (
            setgid_folder.stat().st_gid,
            0o660,
        )
        assert (await house.ask_as_owner("GET", "/v1/status"))[0] == 200
    assert not house.owners.exists()


@pytest.mark.parametrize("group", ["", "no-such-group"])
@pytest.mark.requirement("CONSENT-roles")
async def test_a_folder_admits_only_the_configured_group(tmp_path, setgid_folder, group):
    async with open_house(tmp_path, owner_group=group) as house:
        assert stat.S_IMODE(house.owners.stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
@pytest.mark.requirement("CONSENT-roles")
async def test_a_folder_of_another_user_is_not_used(tmp_path, setgid_folder, monkeypatch):
    """In a shared directory any user may create a folder of that name, and replace what is in
    it.
    """
    os.chown(setgid_folder, 12345, -1)
    setgid_folder.chmod(0o2777)
    made = []
    bind = socket.socket.bind
    monkeypatch.setattr(
        socket.socket, "bind", lambda self, address: (made.append(address), bind(self, address))[1]
    )
    async with open_house(tmp_path, owner_group=group_of_ours()) as house:
        assert (await house.ask_as_owner("GET", "/v1/status"))[0] == 200
    assert str(setgid_folder / "owner.sock") not in made


@pytest.mark.requirement("CONSENT-roles")
async def test_two_daemons_in_one_directory_have_two_owner_sockets(tmp_path):
    async with (
        open_house(tmp_path, name="left.sock") as left,
        open_house(tmp_path, name="right.sock") as right,
    ):
        assert [house.owners.name for house in (left, right)] == [
            "left-owner.sock",
            "right-owner.sock",
        ]
        assert [(await house.ask_as_owner("GET", "/v1/status"))[0] for house in (left, right)] == [
            200,
            200,
        ]
        _, answer = await left.ask("POST", "/v1/confirm", {"token": "tok-1", "allow": True})
        assert str(left.owners) in answer["error"]["fix"]


async def test_callers_cannot_lock_out_the_owner(tmp_path):
    from edge.control.http import HttpLimits

    async with open_house(tmp_path, limits=HttpLimits(connections=2)) as house:
        crowd = [await asyncio.open_unix_connection(str(house.path)) for _ in range(4)]
        assert (await house.ask_as_owner("GET", "/v1/status"))[0] == 200
        for _, writer in crowd:
            writer.close()


@pytest.fixture
def open_place():
    """A folder that every user of this machine may pass through."""
    folder = Path(tempfile.mkdtemp(prefix="glassd-roles-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


ATTACK = """
import os, socket, sys
os.setgroups([int(sys.argv[1])]); os.setgid(65534); os.setuid(65534)
for name in ("control.sock", "owner.sock"):
    with socket.socket(socket.AF_UNIX) as wire:
        try:
            wire.connect(os.path.join(sys.argv[2], name))
            print(name, "open")
        except PermissionError:
            print(name, "shut")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize(
    ("member", "found"),
    [("callers", ["open", "shut"]), ("owners", ["shut", "open"]), ("nobody", ["shut", "shut"])],
)
@pytest.mark.requirement("CONSENT-roles")
async def test_another_user_opens_only_the_socket_of_its_group(open_place, member, found):
    import sys

    callers, owners, nobody = [group for group in grp.getgrall() if group.gr_gid not in {0, 65534}][
        :3
    ]
    gid = {"callers": callers, "owners": owners, "nobody": nobody}[member].gr_gid
    async with open_house(open_place, group=callers.gr_name, owner_group=owners.gr_name):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-c", ATTACK, str(gid), str(open_place), stdout=-1
        )
        async with asyncio.timeout(DEADLINE_S):
            out, _ = await process.communicate()
    assert [line.split()[1] for line in out.decode().splitlines()] == found


async def test_if_the_owners_socket_is_taken_the_first_is_released(tmp_path):
    from edge.control.sockets import SocketTaken

    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "owner.sock"))
        other.listen(1)
        with pytest.raises(
            SocketTaken, match=r"owner\.sock: another glassd is running.*control\.owner_socket"
        ):
            async with open_house(tmp_path):
                pass
    assert not (tmp_path / "control.sock").exists()


def test_the_answer_of_a_tool_contains_no_token():
    from edge.core import confirmation

    assert "tok-1" in repr(ASKED)
    assert "tok-1" not in repr(confirmation.without_token(ASKED))
    assert confirmation.without_token(ToolResponse(data=1)) == ToolResponse(data=1)
