"""Every fix the doctor prints is applied in a test as printed, or named here with the reason
why not. The text of each fix is read from the doctor's own source, so that a new one cannot be
forgotten.
"""

import ast
import re
from pathlib import Path

import pytest

import edge.doctor
from edge.doctor.models import Check, Mark
from edge.doctor.runner import CheckRunner

FOLDER = Path(edge.doctor.__file__).parent
TESTS = Path(__file__).parents[2]

DONE = {
    "start the mock, in a terminal of its own": (
        "test_a_mock_that_does_not_run_is_started_in_a_terminal_of_its_own"
    ),
    "plug in a USB Bluetooth adapter": ("test_a_machine_without_bluetooth_gets_an_alternative"),
    "plug the dongle in, or count again": "test_a_dongle_is_counted_without_opening_it",
    'host = "<a name that this machine can look up': "test_an_unknown_host_name",
    "port = {}, tls = {} (a broker listens there)": (
        "test_a_closed_port_and_the_usual_one_is_named"
    ),
    'host = "<where the broker is>", port = <its port> (nothing listens here': (
        "test_a_closed_port_is_corrected"
    ),
    "renew the broker's certificate before": "test_a_certificate_that_ends_soon_is_a_warning",
    "renew the broker's certificate (Mosquitto": "test_a_certificate_past_its_day_is_renewed",
    'host = "{}"': "test_a_certificate_for_another_name_shows_which",
    'ca_file = "<the file of the authority': "test_an_authority_that_is_not_trusted",
    "tls = false (no TLS is spoken": "test_tls_towards_a_plain_port",
    'username = "<your name>", password_file': "test_a_broker_that_wants_a_password",
    "let {} read and write": "test_a_broker_that_forbids_writing",
    "run glassd doctor again in half a minute": "test_the_daemons_own_connection_is_reported_too",
    "correct the rung above that failed": "test_the_daemons_own_connection_is_reported_too",
    "delete what you do not need on": "test_on_small_disks",
    "give {} more room": "test_on_small_disks",
    "stop glassd run, and start it again: it puts": (
        "test_a_damaged_database_of_a_daemon_in_a_terminal_is_put_aside_by_starting_it_again"
    ),
    "take that side of the glasses out": (
        "test_what_the_doctor_says_of_glasses_is_done_by_their_wearer"
    ),
    "switch the glasses off and on": "test_what_the_doctor_says_of_glasses_is_done_by_their_wearer",
    "tell us: glassd doctor --bundle": ("test_a_check_that_crashes_asks_for_a_bundle"),
    '[cloud] url = "<the address': "test_a_cloud_that_is_not_there",
    "[cloud] token_file": "test_a_cloud_that_wants_a_token",
    '[cloud] url = "{}"': "test_a_cloud_that_moved_says_where",
    "the cloud has a problem of its own": "test_a_cloud_with_a_problem_of_its_own",
    "it comes by itself when the cloud is reached": (
        "test_what_is_kept_of_the_cloud_comes_by_itself_when_glassd_runs"
    ),
    "it is fetched again by itself": (
        "test_what_is_kept_of_the_cloud_comes_by_itself_when_glassd_runs"
    ),
    "correct {}, then: systemctl reload glassd": ("test_an_error_in_an_own_tool_names_its_file"),
    "give it what it waits for": "test_a_tool_that_waits_for_a_secret_is_given_it",
    "install {}, or write its whole path": (
        "test_a_server_without_its_program_is_named_with_the_fix"
    ),
    "put the secret into {}": "test_a_server_whose_secret_cannot_be_read_is_given_it",
    "name what you use of {}": "test_a_server_without_allowed_tools_is_a_warning",
    "see to it ({})": "test_a_server_that_is_away_is_refreshed",
    "start the server at {}, or correct [audio] server": (
        "test_a_voice_server_that_is_away_is_named_and_started"
    ),
    "start the server at {}, or correct [microphone] recogniser": (
        "test_a_server_of_recognition_that_is_away_is_named_and_started"
    ),
    "[microphone] model = <the folder of a model>": (
        "test_a_folder_without_a_model_is_named_and_corrected"
    ),
    "[audio] volume = 80": "test_a_configured_volume_of_0_is_named",
    "start it, in a terminal of its own": ("test_a_daemon_without_a_unit_is_started_in_a_terminal"),
    "examine what it was started with": (
        "test_a_daemon_of_another_configuration_is_examined_by_its_own_radio"
    ),
    "correct the line it names": "test_toml_that_does_not_parse_names_its_line",
    "[{}] write {} instead of {}": "test_a_wrong_key_is_named_with_the_right_one",
}
"""The head of a fix for an editor or for hands ({} is what is filled in) → the test that does
it.
"""
ELSEWHERE = {
    "ask your cloud for a new code, then: glassd up CODE": (
        "test_the_devcloud_shows_a_code_and_glassd_up_takes_it"
    ),
    "a code of your cloud makes it one's": "test_the_devcloud_shows_a_code_and_glassd_up_takes_it",
    "keep the daemon running and online: it renews": (
        "test_a_certificate_is_renewed_over_itself_and_the_next_connection_shows_it"
    ),
}
"""Done as printed by a story of another part, which needs a whole cloud."""
HANDS = {
    "switch Bluetooth on: by the switch": (
        "a key of the machine; the test moves the kernel's own word for it"
    ),
    "let TCP to {} through": "somebody's firewall, Wi-Fi or VPN",
    "see the broker's log": "it says where to look; what is wrong stands there",
    'host = "<the name in the certificate': (
        "a certificate without any name that can be read: no authority of a test makes one"
    ),
    'host = "<where the broker is>", port = <its port> (as said)': (
        "a host that is no host: settings and enrolment let none through"
    ),
    "install the newer glassd again": "there is no newer glassd yet",
    "a slow disk; look again": "a disk that becomes idle",
    "look for errors of {} with dmesg": (
        "it says where to look; a disk that fails while it is written"
    ),
    "run it again; when it stays": (
        "it says where to look; a check that hung once and a kernel's log of why"
    ),
    "install it: sudo make install": "tests/vm/install.py does it, on machines of its own",
    "log out and in again": "a login; the kernel gives groups at no other time",
    "stop glassd run, and start it again": (
        "done as its neighbour, `start it, in a terminal of its own`, and Ctrl-C before it"
    ),
    "check the clock first": (
        "the cloud's operator renews a certificate; the clock's own check does the first half"
    ),
    "install glassd on a 64-bit Linux": "another operating system",
    "install a 64-bit system": "another operating system",
    "let a time server keep it": "a container's host",
    "as root: apt-get install {}": "a package of the system",
}
"""The head of a fix → why no test can do it."""
_CALLS = {"do": 0, "edit": 1, "self._edit": 0, "_delete": None, "Fix": 1}


def printed():
    """Return every fix of the kinds `edit` and `do` in the doctor's source, with {} for what is
    filled in.
    """
    for file in sorted(FOLDER.glob("*.py")):
        if file.name == "words.py":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and _CALLS.get(ast.unparse(node.func)) is not None
                and node.args
            ):
                kind, given = (
                    ast.unparse(node.func),
                    node.args[min(_CALLS[ast.unparse(node.func)], len(node.args) - 1)],
                )
                if kind != "Fix" or "DO" in ast.unparse(node.args[0]):
                    yield from ((file.name, text) for text in _texts(given))
            elif (
                isinstance(node, ast.Return)
                and file.name == "system.py"
                and isinstance(node.value, ast.IfExp)
                and "instead of" in ast.unparse(node)
            ):
                yield from ((file.name, text) for text in _texts(node.value.body))


def _texts(node):
    if isinstance(node, ast.IfExp):
        return [*_texts(node.body), *_texts(node.orelse)]
    if isinstance(node, ast.BoolOp):
        return [text for value in node.values for text in _texts(value)]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return [
            "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        ]
    return []  # a name: what it stands for is read where it is written


@pytest.mark.requirement("I4-doctor-fixes")
def test_every_manual_fix_is_tested_or_says_why_not():
    known = {**DONE, **ELSEWHERE, **HANDS}
    found = [(file, text) for file, text in printed() if text not in {"[uplink] {}", ""}]
    assert len(found) > 40
    forgotten = [
        (file, text) for file, text in found if not any(text.startswith(head) for head in known)
    ]
    assert not forgotten, (
        "do it in a test as it is printed, and name the test here; or say why nobody can"
    )
    gone = [head for head in known if not any(text.startswith(head) for _, text in found)]
    assert not gone, "no such fix is printed any more"


@pytest.mark.requirement("I4-doctor-fixes")
def test_the_tests_that_do_them_are_there():
    there = {
        name
        for file in TESTS.rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", file.read_text(encoding="utf-8"))
    }
    assert not {*DONE.values(), *ELSEWHERE.values()} - there


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_check_that_crashes_asks_for_a_bundle(sandbox):
    async def stumbles():
        raise ZeroDivisionError

    check = Check(id="x", layer="system", title="x", examine=stumbles)
    async with CheckRunner((check,), now=lambda: 0.0).running() as entries:
        (entry,) = [e async for e in entries]
    assert entry.finding.mark is Mark.FAIL
    sandbox.install()
    await sandbox.does(entry.finding, ends=1)
    assert (sandbox.folder / "doctor.tar.gz").stat().st_size > 1000
