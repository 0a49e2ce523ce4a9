"""`make install` and `make uninstall`: idempotent, gentle with what is a person's, and clear
when it refuses.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import install as installing
import pytest
from install import Machine, Refused, install, main, uninstall
from places import CONFIG, OPT, Layout
from venv_tree import EXTRAS, CannotBuild, copy_of_sources, remove_unused, with_extras

from tests.unit.packaging.conftest import PYTHON, ROOT, VERSION, tiny_wheel

pytestmark = pytest.mark.timeout(
    300
)  # each installs into a venv, on a machine that has others to do

LOCAL = Layout("/usr/local")


def everything(root):
    return {str(p.relative_to(root)) for p in root.rglob("*") if not p.is_dir()}


def put(root, wheels, layout=LOCAL):
    install(Machine(str(root)), layout, python=PYTHON, wheels=str(wheels), extras=EXTRAS)


@pytest.fixture(scope="module")
def installed(tmp_path_factory, wheels):
    root = tmp_path_factory.mktemp("machine")
    put(root, wheels)
    return root


def test_everything_has_its_place(installed):
    have = everything(installed)
    assert have >= {
        "opt/glassd/bin/glassd",
        "usr/local/bin/glassd",
        "etc/systemd/system/glassd.service",
        "etc/systemd/user/glassd.service",
        "etc/systemd/system/glassd-mcp.socket",
        "etc/systemd/system/glassd-mcp.service",
        "etc/systemd/system/bluetooth.service.d/glassd.conf",
        "etc/sysusers.d/glassd.conf",
        "etc/dbus-1/system.d/glassd.conf",
        "usr/local/share/man/man1/glassd.1",
        "usr/local/share/doc/glassd/README.md",
        "usr/local/share/doc/glassd/docs/troubleshooting.md",
        "usr/local/share/glassd/radio/usb.conf",
        "usr/local/share/bash-completion/completions/glassd",
        "etc/glassd/glassd.toml",
    }
    assert (installed / "usr/local/bin/glassd").readlink() == Path(f"{OPT}/bin/glassd")
    assert (installed / "opt/glassd/bin/python3").readlink() == Path(PYTHON)
    assert not [p for p in have if ".new" in p or ".old" in p]


def test_the_command_runs_by_the_venvs_own_python_on_bytecode_made_beforehand(installed):
    command = installed / "opt/glassd/bin/glassd"
    assert command.read_text().splitlines()[0] == f"#!{OPT}/bin/python3"
    site = installed / f"opt/glassd/lib/python{VERSION}/site-packages"
    # a Python that surely is here
    inside = (
        f"import runpy, sys; sys.path.insert(0, {str(site)!r}); runpy.run_path({str(command)!r})"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-B", "-v", "-c", inside],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (ran.stdout, ran.returncode) == ("glassd 0.1.0\n", 3)
    assert (
        f"code object from '{site}/edge/cli.py'" not in ran.stderr
    )  # which a compilation would say
    assert f"{site}/edge/__pycache__/cli." in ran.stderr


@pytest.mark.requirement("I4-install")
def test_an_upgrade_keeps_settings_and_state_and_removes_what_no_longer_belongs(
    installed, tmp_path
):
    settings, state = installed / CONFIG[1:], installed / "var/lib/glassd/glassd.db"
    settings.write_text("version = 1 # mine\n")
    state.parent.mkdir(parents=True)
    state.write_text("calls")
    old = installed / "etc/systemd/system/glassd-old.service"
    old.write_text("of a version before")
    manifest = installed / "opt/glassd/manifest"
    manifest.write_text(manifest.read_text() + "/etc/systemd/system/glassd-old.service\n")
    before = everything(installed)
    put(installed, tiny_wheel(tmp_path, "0.2.0"))
    assert (settings.read_text(), state.read_text()) == ("version = 1 # mine\n", "calls")
    assert not old.exists()
    after = everything(installed)
    assert {p for p in before ^ after if "dist-info" not in p} == {
        "etc/systemd/system/glassd-old.service"
    }


@pytest.mark.requirement("I11-sysctl")
def test_no_setting_of_the_whole_machine_is_installed_and_an_upgrade_removes_the_old_one(
    installed, tmp_path
):
    assert not list(installed.rglob("*sysctl*"))
    for version in "ab":
        (tmp_path / version).mkdir()
    old = installed / "etc/sysctl.d/60-glassd.conf"
    old.parent.mkdir()
    old.write_text("net.core.rmem_default = 8388608\n")
    put(installed, tiny_wheel(tmp_path / "a", "0.3.0"))
    assert old.exists()  # written as the doctor says, it is the owner's
    manifest = installed / "opt/glassd/manifest"
    manifest.write_text(
        manifest.read_text() + "/etc/sysctl.d/60-glassd.conf\n"
    )  # as the versions before had it
    put(installed, tiny_wheel(tmp_path / "b", "0.4.0"))
    assert not old.exists()


@pytest.mark.requirement("I4-install")
def test_uninstalling_keeps_state_and_settings_and_purging_leaves_nothing(tmp_path, installed):
    import shutil

    root = tmp_path / "machine"
    shutil.copytree(installed, root, symlinks=True)
    (root / "etc/credstore").mkdir(parents=True)
    (root / "etc/credstore/glassd-mqtt-password").write_text("secret")
    (root / "etc/credstore/another").write_text("not ours")
    uninstall(Machine(str(root)), purge=False)
    kept = {p for p in everything(root) if not p.startswith("var/lib/glassd")}
    assert kept == {
        "etc/glassd/glassd.toml",
        "etc/credstore/glassd-mqtt-password",
        "etc/credstore/another",
    }
    uninstall(Machine(str(root)), purge=False)  # nothing there: no complaint
    uninstall(Machine(str(root)), purge=True)
    assert everything(root) == {"etc/credstore/another"}


def test_a_failed_installation_leaves_the_one_before(tmp_path, installed):
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "glassd-9.9.9-py3-none-any.whl").write_bytes(b"no wheel")
    before = everything(installed)
    with pytest.raises(CannotBuild, match="pip install failed"):
        put(installed, broken)
    assert {p for p in everything(installed) if ".new/" not in p} == before


def test_another_prefix_is_named_in_the_unit(tmp_path, wheels, monkeypatch):
    monkeypatch.setattr(installing, "make", lambda tree, *_, **__: tree.mkdir(parents=True))
    put(tmp_path, wheels, Layout("/srv/glassd"))
    assert (
        "\nExecStart=/srv/glassd/bin/glassd run\n"
        in (tmp_path / "etc/systemd/system/glassd.service").read_text()
    )
    assert (tmp_path / "srv/glassd/bin/glassd").is_symlink()


def test_a_command_of_somebody_elses_is_not_overwritten(tmp_path, wheels, monkeypatch):
    monkeypatch.setattr(installing, "make", lambda tree, *_, **__: tree.mkdir(parents=True))
    theirs = tmp_path / "usr/local/bin/glassd"
    theirs.parent.mkdir(parents=True)
    theirs.symlink_to("/home/pat/.local/bin/glassd")
    with pytest.raises(Refused, match="is not ours"):
        put(tmp_path, wheels)
    assert everything(tmp_path) == {"usr/local/bin/glassd"}


def test_an_installation_brings_every_extra_that_needs_nothing_else():
    """Not that of developers, nor sherpa-onnx, which is of use only with a model of one's own, nor
    python-kasa, which is under the GPL.
    """
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    wanted = {name for name, needs in extras.items() if needs} - {"dev", "ears-sherpa", "kasa"}
    assert set(EXTRAS.split(",")) == wanted
    assert f"EXTRAS ?= {EXTRAS}\n" in (ROOT / "Makefile").read_text(encoding="utf-8")


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize("action", ["install", "uninstall"])
def test_without_root_it_says_so_and_touches_nothing(action, monkeypatch, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "argv", ["install.py", action])
    assert main() == 1
    assert "sudo make install" in capsys.readouterr().err


def test_beside_a_debian_package_it_refuses(tmp_path, wheels):
    listed = tmp_path / "var/lib/dpkg/info/glassd.list"
    listed.parent.mkdir(parents=True)
    listed.write_text("/opt/glassd\n")
    with pytest.raises(Refused, match="apt-get remove glassd"):
        put(tmp_path, wheels)


@pytest.mark.parametrize(
    ("python", "why"),
    [
        ("/usr/bin/python3.9", "needs 3.11 or newer"),
        ("/usr/bin/no-such-python", "does not run here"),
    ],
)
def test_a_python_that_cannot_serve_is_refused(python, why, tmp_path, wheels):
    with pytest.raises(Refused, match=why):
        install(Machine(str(tmp_path)), LOCAL, python=python, wheels=str(wheels), extras=EXTRAS)
    assert everything(tmp_path) == set()


def test_a_python_in_a_home_directory_is_refused_as_the_service_cannot_see_it(monkeypatch):
    monkeypatch.setattr(os.path, "realpath", lambda _path: "/root/pythons/bin/python3.11")
    with pytest.raises(Refused, match="home directories"):
        installing._target(Machine(""), "/usr/bin/python3")


@pytest.mark.parametrize("prefix", ["usr", "/", "/usr/../etc"])
def test_a_prefix_that_is_none_is_refused(prefix, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(
        sys, "argv", ["install.py", "install", "--prefix", prefix, "--destdir", str(tmp_path)]
    )
    assert main() == 1
    assert "absolute path" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("extras", "said"),
    [("", ""), (" , ", ""), ("voice", "[voice]"), (" voice, enrol ", "[voice,enrol]")],
)
def test_no_extras_are_no_brackets(extras, said):
    assert with_extras(extras) == said


def test_all_that_the_wheel_takes_is_in_the_copy_it_is_built_from(tmp_path):
    copy = copy_of_sources(tmp_path / "source")
    wheel = tomllib.loads((copy / "pyproject.toml").read_text())["tool"]["hatch"]["build"][
        "targets"
    ]["wheel"]
    taken = [*wheel["force-include"], *wheel["packages"]]
    assert len(taken) > 3
    assert [name for name in taken if not (copy / name).exists()] == []


def test_of_the_recogniser_only_the_model_is_installed(tmp_path):
    """Its own library takes more room than all else of it."""
    for name in (
        "moonshine_voice/assets/tiny-en/encoder_model.ort",
        "moonshine_voice/libmoonshine.so",
        "moonshine_voice.libs/libonnxruntime.so.1",
        "numpy.libs/libopenblas.so",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for _ in range(2):
        remove_unused(tmp_path)
        assert everything(tmp_path) == {
            "moonshine_voice/assets/tiny-en/encoder_model.ort",
            "numpy.libs/libopenblas.so",
        }
