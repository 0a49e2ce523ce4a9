"""The other MCP servers: each fault is reported with its fix, and the fix turns it OK."""

import json

import pytest

from edge.doctor.models import Mark
from edge.doctor.redact import Redact
from tests.unit.doctor.test_service import STATUS, answers

RELOAD = "systemctl reload glassd"


def configured(sandbox, **more):
    """A correct server, except for what is given."""
    program = sandbox.write("bin/papers", "#!/bin/sh\n")
    program.chmod(0o755)
    server = {"id": "papers", "command": str(program), "allowed_tools": ["read"], **more}
    rows = "\n".join(
        f"{key} = {json.dumps(value)}"
        for key, value in server.items()
        if not isinstance(value, dict)
    )
    rows += "".join(
        f"\n{key} = {{ " + ", ".join(f"{k} = {json.dumps(v)}" for k, v in value.items()) + " }"
        for key, value in server.items()
        if isinstance(value, dict)
    )
    head = sandbox.config.read_text().partition("[[mcp.servers]]")[0]
    sandbox.config.write_text(f"{head}\n[[mcp.servers]]\n{rows}\n")


async def test_without_servers_nothing_is_checked(sandbox):
    assert (await sandbox.sees("servers")).mark is Mark.SKIP


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_server_without_its_program_is_named_with_the_fix(sandbox):
    configured(sandbox, command="/nowhere/papers")
    finding = await sandbox.sees("servers")
    assert (finding.mark, "papers: there is no program /nowhere/papers" in finding.said) == (
        Mark.FAIL,
        True,
    )
    configured(sandbox)
    await sandbox.does(finding)
    assert RELOAD in sandbox.ran
    assert (await sandbox.sees("servers")).mark is Mark.OK


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_server_whose_secret_cannot_be_read_is_given_it(sandbox):
    place = sandbox.folder / "token"
    configured(sandbox, env={"T": "${env.TOKEN}"}, secret_files={"TOKEN": str(place)})
    finding = await sandbox.sees("servers")
    assert (finding.mark, str(place) in finding.fix.text) == (Mark.FAIL, True)
    place.write_text("hush")
    await sandbox.does(finding)
    assert (await sandbox.sees("servers")).mark is Mark.OK


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_server_without_allowed_tools_is_a_warning(sandbox):
    configured(sandbox, allowed_tools=[])
    finding = await sandbox.sees("servers")
    assert (finding.mark, "nothing of it comes in" in finding.said) == (Mark.WARN, True)
    configured(sandbox)
    await sandbox.does(finding)
    assert (await sandbox.sees("servers")).mark is Mark.OK


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_server_that_is_away_is_refreshed(sandbox):
    configured(sandbox)
    answers(sandbox, servers={"away": {"papers": "it ended with 3"}})
    finding = await sandbox.sees("servers")
    assert (finding.mark, finding.said) == (Mark.WARN, "papers is away: it ended with 3")
    assert finding.fix.text == "see to it (it ended with 3), then: glassd servers refresh papers"
    (sandbox.folder / "status.json").write_text(
        json.dumps(STATUS)
    )  # what a daemon says whose server is back
    assert (await sandbox.sees("servers")).mark is Mark.OK


@pytest.mark.requirement("I4-doctor-fixes")
async def test_the_missing_library_is_installed_by_the_fix(sandbox):
    configured(sandbox)
    python = sandbox.folder / "python"
    python.write_text(
        "#!/bin/bash\n[ \"$*\" = '-m pip install --upgrade glassd[mcp]' "
        f"] && touch {sandbox.folder}/installed\n"
    )
    python.chmod(0o755)
    sandbox.changed = {
        "has": lambda name: name != "mcp" or (sandbox.folder / "installed").exists(),
        "interpreter": str(python),
    }
    await sandbox.fails_until_cured("servers", "not installed")


@pytest.mark.requirement("I4-doctor-bundle")
def test_the_bundle_hides_possible_secrets_of_servers():
    told = Redact().config(b"""version = 1
[[mcp.servers]]
id = "papers"
url = "https://h/mcp?k=hush0451"
args = ["--key", "hush0451"]
env = { PAT = "hush0451" }
headers = { X-Mine = "hush0451" }
allowed_tools = ["read"]
hush0451 = "hush0451"
""")
    assert "hush0451" not in told
    assert "papers" in told
    assert "'allowed_tools': ['read']" in told
