"""The Debian packages, built from a tiny wheel: their fields, their files, their scripts, and
the same bytes each time.
"""

import shutil
import subprocess

import deb as packing
import pytest
from deb import SCRIPTS, SUITES, build
from venv_tree import Target, make

from tests.system import needs
from tests.unit.packaging.conftest import PYTHON, VERSION

pytestmark = needs("dpkg-deb")
EPOCH = 1_800_000_000


def told(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.fixture(scope="module")
def packages(tmp_path_factory, wheels):
    """Each suite's package, and the first one built once more."""
    tree = tmp_path_factory.mktemp("tree") / "glassd"
    make(tree, wheels, target=Target(PYTHON, VERSION, "amd64"))
    out = tmp_path_factory.mktemp("dist")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            packing, "make", lambda to, *_, **__: shutil.copytree(tree, to, symlinks=True)
        )
        built = [build(suite, "amd64", out=out, wheels=wheels, epoch=EPOCH) for suite in SUITES]
        again = build(SUITES[0], "amd64", out=out / "again", wheels=wheels, epoch=EPOCH)
    return [*built, again]


@pytest.mark.requirement("I4-deb")
def test_each_suite_has_its_own_python_and_an_upgrade_of_debian_is_an_upgrade_of_the_package(
    packages,
):
    names = [p.name for p in packages[:2]]
    assert names == ["glassd_0.1.0-1~deb12u1_amd64.deb", "glassd_0.1.0-1~deb13u1_amd64.deb"]
    depends = [told("dpkg-deb", "-f", p, "Depends") for p in packages[:2]]
    assert "python3 (>= 3.11), python3 (<< 3.12)" in depends[0]
    assert "python3 (>= 3.13), python3 (<< 3.14)" in depends[1]
    assert all("bluez" in d and "dbus" in d for d in depends)
    recommends = [told("dpkg-deb", "-f", p, "Recommends").strip() for p in packages[:2]]
    assert recommends == ["liblc3-0 | liblc3-1"] * 2, "one name per Debian release"
    subprocess.run(
        ["dpkg", "--compare-versions", "0.1.0-1~deb12u1", "lt", "0.1.0-1~deb13u1"], check=True
    )


@pytest.mark.requirement("I4-deb")
def test_the_same_commit_gives_the_same_bytes(packages):
    assert packages[0].read_bytes() == packages[2].read_bytes()


def test_its_files_are_roots_in_the_distributions_places_and_no_settings_file_is_dpkgs(packages):
    lines = told("dpkg-deb", "-c", packages[0]).splitlines()
    assert {line.split()[1] for line in lines} == {"root/root"}
    paths = {line.split()[5] for line in lines}
    assert paths >= {
        "./usr/bin/glassd",
        "./opt/glassd/bin/glassd",
        "./usr/lib/systemd/system/glassd.service",
        "./usr/lib/systemd/user/glassd.service",
        "./usr/lib/systemd/system/glassd-mcp.socket",
        "./usr/lib/systemd/system/glassd-mcp.service",
        "./usr/lib/systemd/system/bluetooth.service.d/glassd.conf",
        "./usr/lib/sysusers.d/glassd.conf",
        "./usr/share/dbus-1/system.d/glassd.conf",
        "./usr/share/man/man1/glassd.1.gz",
        "./usr/share/doc/glassd/copyright",
        "./usr/share/doc/glassd/README.md",
        "./usr/share/doc/glassd/docs/troubleshooting.md",
        "./usr/share/doc/glassd/changelog.Debian.gz",
        "./usr/share/zsh/vendor-completions/_glassd",
        "./usr/share/glassd/radio/audio.conf",
    }
    assert not [p for p in paths if "sysctl" in p]  # no setting of the whole machine
    assert not [
        p for p in paths if p.startswith(("./etc", "./var"))
    ]  # what a person edits, an upgrade never asks about
    assert not [p for p in paths if "direct_url" in p or "site-packages/bin" in p]


def test_the_licences_of_what_it_brings_are_told(packages, tmp_path):
    told("dpkg-deb", "-x", packages[0], tmp_path)
    assert " glassd 0.1.0: Apache-2.0" in (tmp_path / "usr/share/doc/glassd/copyright").read_text()


def test_the_checksums_are_right(packages, tmp_path):
    told("dpkg-deb", "-R", packages[0], tmp_path)
    ran = subprocess.run(
        ["md5sum", "--quiet", "-c", "DEBIAN/md5sums"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "")


@pytest.mark.parametrize("script", ["preinst", "postinst", "prerm", "postrm"])
def test_its_scripts_stop_at_the_first_error_and_are_sh(script):
    text = (SCRIPTS / script).read_text()
    assert text.startswith("#!/bin/sh\n")
    assert "\nset -e\n" in text
    subprocess.run(["sh", "-n", SCRIPTS / script], check=True, timeout=10)


@pytest.mark.requirement("I4-deb")
def test_only_purging_touches_what_is_a_persons():
    for script in ("preinst", "postinst", "prerm"):
        assert "rm " not in (SCRIPTS / script).read_text()
    before, _, purge = (SCRIPTS / "postrm").read_text().partition('if [ "$1" = purge ]')
    assert "rm -rf" not in before
    assert "/var/lib/glassd" in purge


def test_a_suite_that_no_package_is_made_for_is_said_and_nothing_is_built(
    monkeypatch, capsys, tmp_path
):
    monkeypatch.setattr("sys.argv", ["deb.py", "bookworm", "bullseye", "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        packing.main()
    assert ended.value.code == 2
    assert (
        "bullseye: no package is made for it; there are bookworm, trixie" in capsys.readouterr().err
    )
    assert not list(tmp_path.iterdir())
