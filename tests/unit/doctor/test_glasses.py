"""The glasses: the bonds compared with the keys of BlueZ, and the link as the daemon reports it."""

import json

import pytest

from edge.core.pairing_state import Bond
from edge.doctor.models import FixKind, Mark
from edge.link.bonds import encoded
from tests.unit.doctor.test_bluetooth import serves
from tests.unit.doctor.test_service import STATUS, answers

LEFT, RIGHT = "C0:FF:EE:00:00:01", "C0:FF:EE:00:00:02"
BOND = Bond(
    id="Even G1_7",
    model="even_g1",
    name="Even G1_7",
    addresses={"left": LEFT, "right": RIGHT},
    how="passkey",
    paired_at=1.0,
)
NO_KEYS = Bond(
    id=LEFT, model="mock:display", name="mock", addresses={"": LEFT}, how="none", paired_at=1.0
)


@pytest.fixture
def radio(sandbox):
    (sandbox.root / "sys/class/bluetooth/hci0").mkdir(parents=True)
    (sandbox.folder / "bluez-version").write_text("5.66")
    sandbox.start_bus()
    return sandbox


def keep(sandbox, *bonds):
    (sandbox.state / "bonds.json").write_bytes(encoded(bonds))


def pairs(sandbox, script):
    """Do what `glassd` with these words does on this machine."""
    program = sandbox.bin / "glassd"
    program.write_text(f"#!/bin/bash\necho glassd $* >> $SANDBOX/ran\n{script}\n")
    program.chmod(0o755)


@pytest.mark.requirement("I4-doctor-fixes")
async def test_no_paired_glasses_is_a_warning_with_the_fix(radio):
    radio.start_bluez()
    prepared = radio.folder / "bonds.json"
    prepared.write_bytes(encoded([NO_KEYS]))
    pairs(radio, f"cp {prepared} {radio.state}/bonds.json")
    await radio.fails_until_cured("bond", "none", mark=Mark.WARN)
    assert "glassd up" in radio.ran


@pytest.mark.requirement("I4-doctor-fixes")
async def test_both_sides_of_a_pair_are_known_to_bluez(radio):
    radio.start_bluez("--device", LEFT, RIGHT)
    keep(radio, BOND)
    finding = await radio.sees("bond")
    assert finding.mark is Mark.OK
    assert "left and right, passkey" in finding.said


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_side_that_bluez_forgot_is_paired_again(radio):
    there = radio.start_bluez("--device", LEFT)
    keep(radio, BOND)
    pairs(
        radio,
        f"[ \"$2\" = 'Even G1_7' ] || exit 2; kill {there.pid}; "
        f"{serves(radio, '--device', LEFT, RIGHT)}",
    )
    finding = await radio.fails_until_cured("bond", RIGHT)
    assert LEFT not in finding.said
    assert finding.fix.text == "glassd pair 'Even G1_7'"


@pytest.mark.requirement("I4-doctor-fixes")
async def test_glasses_that_know_no_pairing_have_no_key_to_lose(radio):
    radio.start_bluez()
    keep(radio, NO_KEYS)
    assert (await radio.sees("bond")).mark is Mark.OK


@pytest.mark.requirement("I4-doctor-fixes")
async def test_without_bluez_its_keys_are_not_checked(sandbox):
    keep(sandbox, BOND)
    assert (await sandbox.sees("bond")).mark is Mark.OK


@pytest.mark.requirement("I4-doctor-fixes")
async def test_damaged_bonds_are_put_away(sandbox):
    (sandbox.state / "bonds.json").write_text("{")
    finding = await sandbox.sees("bond")
    assert finding.mark is Mark.FAIL
    await sandbox.cures(finding)
    assert (sandbox.state / "bonds.json.damaged").exists()
    prepared = sandbox.folder / "bonds.json"
    prepared.write_bytes(encoded([NO_KEYS]))
    pairs(sandbox, f'[ "$*" = up ] && cp {prepared} {sandbox.state}/bonds.json')
    await sandbox.fails_until_cured("bond", "none", mark=Mark.WARN)


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_key_the_glasses_forgot_is_created_again(sandbox):
    keep(sandbox, NO_KEYS)
    answers(sandbox, glasses={"bond": "lost"})
    pairs(sandbox, f"echo '{json.dumps(STATUS)}' > {sandbox.folder}/status.json")
    await sandbox.fails_until_cured("bond", "do not know our key")


@pytest.mark.parametrize(
    "sections",
    [
        {"glasses": {"address": LEFT}},
        {"glasses": {"connect": "any"}},
        {"glasses": {"radio": "inproc"}},
    ],
)
@pytest.mark.requirement("I4-doctor-fixes")
async def test_glasses_that_need_no_bond_are_ok_without(sandbox, sections):
    sandbox.configure(**sections)
    assert (await sandbox.sees("bond")).mark is Mark.OK


READY = {
    "link": {"state": "READY"},
    "glasses": {"model": "even_g1", "firmware": "1.5.6", "transport": "bluez", "mtu": 247},
}


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_link_that_is_up_is_ok(sandbox):
    answers(sandbox, **READY)
    assert (await sandbox.sees("link")).mark is Mark.OK
    assert (await sandbox.sees("mtu")).said == "247 bytes"


@pytest.mark.requirement("I4-doctor-fixes")
async def test_glasses_that_are_away_are_a_warning_with_the_daemons_reason(sandbox):
    answers(
        sandbox,
        link={
            "state": "RESTING",
            "reason": "not heard",
            "hint": "switch the glasses on and bring them near",
        },
    )
    finding = await sandbox.sees("link")
    assert finding.mark is Mark.WARN
    assert finding.fix.text == "switch the glasses on and bring them near"
    assert (await sandbox.sees("mtu")).mark is Mark.SKIP


@pytest.mark.requirement("I4-doctor-fixes")
async def test_one_side_that_is_away_is_named(sandbox):
    answers(
        sandbox,
        link={"state": "READY"},
        glasses={
            **READY["glasses"],
            "sides": {
                "left": {"state": "up"},
                "right": {"state": "lost", "reason": "out of reach"},
            },
        },
    )
    finding = await sandbox.sees("link")
    assert finding.mark is Mark.WARN
    assert "right (out of reach)" in finding.said
    assert finding.fix.kind is FixKind.DO


@pytest.mark.requirement("I4-doctor-fixes")
async def test_small_packets_are_a_warning(sandbox):
    answers(sandbox, link={"state": "READY"}, glasses={**READY["glasses"], "mtu": 23})
    finding = await sandbox.sees("mtu")
    assert finding.mark is Mark.WARN
    (sandbox.folder / "status.json").write_text(json.dumps({**STATUS, **READY}))
    assert (await sandbox.sees("mtu")).mark is Mark.OK
