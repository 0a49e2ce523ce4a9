"""Operating system, libraries, configuration, clock."""

import os
import platform
import re
import sys
from pathlib import Path

import pytest

from edge.doctor.machine import Machine, Who
from edge.doctor.models import Mark, run


@pytest.mark.requirement("I4-doctor-fixes")
async def test_this_system_can_run_glassd(sandbox):
    finding = await sandbox.sees("os")
    assert finding.mark is Mark.OK
    assert f"Linux 6.12.0 {platform.machine()}" in finding.said


@pytest.mark.parametrize(
    ("change", "word"), [({"bits": 32}, "32 bits"), ({"system": "Darwin"}, "needs Linux")]
)
@pytest.mark.requirement("I4-doctor-fixes")
async def test_an_unsuitable_system_shows_what_to_install(sandbox, change, word):
    sandbox.changed = change
    finding = await sandbox.sees("os")
    assert finding.mark is Mark.FAIL
    assert word in finding.said
    assert finding.fix.text.startswith("install ")


@pytest.mark.parametrize(
    ("before", "after", "word", "ran"),
    [
        (
            {"python": (3, 9, 2)},
            {"python": (3, 11, 2)},
            "Python 3.11",
            "apt-get install -y python3.11 python3.11-venv",
        ),
        (
            {"release": "4.19.0-27-arm64"},
            {"release": "6.1.0-35-arm64"},
            "older than 5.10",
            "apt-get full-upgrade -y\n",
        ),
    ],
)
@pytest.mark.requirement("I4-doctor-fixes")
async def test_an_old_system_is_renewed_by_the_printed_commands(sandbox, before, after, word, ran):
    """The commands run; they bring another interpreter or kernel, on which the next doctor runs."""
    sandbox.changed = before
    finding = await sandbox.sees("os")
    assert word in finding.said
    await sandbox.cures(finding)
    assert ran in sandbox.ran
    sandbox.changed = after
    assert (await sandbox.sees("os")).mark is Mark.OK


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_missing_library_is_installed_by_the_printed_command(sandbox):
    python = sandbox.folder / "python"
    python.write_text(
        "#!/bin/bash\n[ \"$*\" = '-m pip install --upgrade glassd' ] "
        f"&& touch {sandbox.folder}/installed\n"
    )
    python.chmod(0o755)
    has = lambda name: name != "bleak" or (sandbox.folder / "installed").exists()  # noqa: E731
    sandbox.changed = {"has": has, "interpreter": str(python)}
    await sandbox.fails_until_cured("libraries", "not installed: bleak")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_the_libraries_follow_the_radio(sandbox):
    sandbox.changed = {"has": lambda name: name not in {"bumble", "usb1"}}
    assert (await sandbox.sees("libraries")).mark is Mark.OK
    sandbox.configure(glasses={"radio": "usb:0"})
    finding = await sandbox.sees("libraries")
    assert "bumble, usb1" in finding.said
    assert "'glassd[sim]'" in finding.fix.text


FONTS = ("NotoSans[wght].ttf", "NotoSansHebrew[wght].ttf", "NotoEmoji[wght].ttf")


@pytest.mark.requirement("I4-doctor-fixes")
@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        (["uharfbuzz", "unicode_segmentation_rs"], "uharfbuzz, unicode_segmentation_rs"),
        (["CJK"], "a font for Chinese, Japanese and Korean"),
        (["Emoji"], "a font for emoji"),
        (["Hebrew"], "fonts for other scripts"),
    ],
    ids=str,
)
async def test_what_draws_other_scripts_is_installed_by_the_printed_command(sandbox, lacking, said):
    installed, wheels = sandbox.folder / "installed", sandbox.folder / "wheels"
    fonts = [wheels / "manimgx_fonts" / name for name in FONTS]
    fonts.append(wheels / "manimgx_fonts_cjk" / "NotoSansCJK-VF.otf.ttc")
    for font in fonts:
        font.parent.mkdir(parents=True, exist_ok=True)
        if not any(word in font.name for word in lacking):
            font.touch()
    python = sandbox.folder / "python"
    python.write_text(
        "#!/bin/bash\n[ \"$*\" = '-m pip install --upgrade glassd[scripts]' ] && touch "
        f"{installed} {' '.join(map(str, fonts))}\n"
    )
    python.chmod(0o755)
    sandbox.changed = {
        "has": lambda name: name not in lacking or installed.exists(),
        "interpreter": str(python),
        "wheels": (str(wheels),),
    }
    await sandbox.fails_until_cured("fonts", said, mark=Mark.WARN)


async def test_fonts_of_the_system_and_of_a_configured_folder_count(sandbox):
    assert (await sandbox.sees("fonts")).mark is Mark.WARN
    sandbox.write("/usr/share/fonts/truetype/noto/NotoSansHebrew-Regular.ttf", "")
    sandbox.write("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc", "")
    own = sandbox.folder / "own"
    own.mkdir()
    (own / "NotoEmoji[wght].ttf").touch()
    config = sandbox.config.read_text()
    sandbox.config.write_text(f'{config}[display]\nfonts = ["{own}"]\n')
    finding = await sandbox.sees("fonts")
    assert (finding.mark, finding.said) == (
        Mark.OK,
        "1 scripts, Chinese, Japanese, Korean, emoji",
    )


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_configuration_without_its_version_gets_one(sandbox):
    sandbox.config.write_text(sandbox.config.read_text().replace("version = 1\n", ""))
    await sandbox.fails_until_cured("config", "version: missing")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_wrong_key_is_named_with_the_right_one(sandbox):
    sandbox.configure(uplink={"hots": "broker.local"})
    finding = await sandbox.sees("config")
    assert finding.mark is Mark.FAIL
    assert "uplink.hots: unknown key" in finding.said
    assert finding.fix.text == f"in {sandbox.config}: [uplink] write host instead of hots"
    sandbox.edits(finding)
    assert (await sandbox.sees("config")).mark is Mark.OK


async def test_a_tool_with_wrong_settings_is_a_warning(
    sandbox,
):
    whole = sandbox.config.read_text()
    sandbox.config.write_text(
        whole + '[tool.notes.add]\nenabled = false\n[tool.clock.now]\ntimezone = "Mars"\n'
    )
    finding = await sandbox.sees("config")
    assert finding.mark is Mark.WARN
    assert finding.said.startswith(
        "clock:now is off: its settings are wrong ([tool.clock.now] timezone: "
    )
    assert finding.fix.text == f"correct {sandbox.config}, then: systemctl reload glassd"
    sandbox.config.write_text(whole + "[tool.notes.add]\nenabled = false\n")
    assert (await sandbox.sees("config")).mark is Mark.OK


@pytest.mark.requirement("I4-doctor-fixes")
async def test_toml_that_does_not_parse_names_its_line(sandbox):
    sandbox.config.write_text("version = 1\n[uplink\n")
    finding = await sandbox.sees("config")
    assert finding.mark is Mark.FAIL
    assert finding.fix.text == f"in {sandbox.config}: correct the line it names"
    lines = sandbox.config.read_text().splitlines()
    at = int(re.search(r"line (\d+)", finding.said)[1]) - 1
    lines[at] += "]"
    sandbox.config.write_text("\n".join(lines) + "\n")
    assert (await sandbox.sees("config")).mark is Mark.OK


# ------------------------------------------------------------------ clock


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_clock_that_was_never_set_is_set_by_the_time_server(sandbox):
    (sandbox.folder / "wall").write_text("1388534400")  # 2014
    (sandbox.folder / "synchronised").unlink()
    (sandbox.folder / "timedate").write_text("CanNTP=yes\nNTP=no\nNTPSynchronized=no\n")
    finding = await sandbox.fails_until_cured("clock", "2014-01-01", "TLS cannot work")
    assert "timedatectl set-ntp true" in finding.fix.text


async def test_the_doctor_shows_a_moment_as_the_wearer_reads_it(sandbox):
    (sandbox.folder / "wall").write_text("1796040000")  # 2026-11-30 12:00 UTC
    whole = sandbox.config.read_text()
    sandbox.config.write_text(whole + '[wearer]\nlocale = "de"\ntimezone = "Europe/Berlin"\n')
    finding = await sandbox.sees("clock")
    assert finding.said.endswith("the wearer reads Mo., 30. Nov., 13:00 (de, Europe/Berlin)")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_an_unsynchronised_clock_is_a_warning(sandbox):
    (sandbox.folder / "synchronised").unlink()
    (sandbox.folder / "timedate").write_text("CanNTP=yes\nNTP=no\nNTPSynchronized=no\n")
    await sandbox.fails_until_cured("clock", "the clock is not synchronised", mark=Mark.WARN)


@pytest.mark.parametrize(
    ("told", "command"),
    [
        (
            "CanNTP=no\nNTP=no\n",
            "apt-get install -y systemd-timesyncd && sudo timedatectl set-ntp true",
        ),
        ("CanNTP=yes\nNTP=yes\n", "systemctl restart systemd-timesyncd"),
    ],
)
@pytest.mark.requirement("I4-doctor-fixes")
async def test_the_way_to_a_time_server_is_this_machines_own(sandbox, told, command):
    (sandbox.folder / "synchronised").unlink()
    (sandbox.folder / "timedate").write_text(told)
    sandbox.unit("systemd-timesyncd")
    sandbox.hook("systemd-timesyncd-started", "touch $SANDBOX/synchronised")
    sandbox.changed = {"me": Who(4711, "ada")}
    finding = await sandbox.fails_until_cured("clock", mark=Mark.WARN)
    assert finding.fix.text == f"sudo {command}"


@pytest.mark.requirement("I4-doctor-fixes")
def test_root_is_not_told_to_use_sudo(sandbox):
    sandbox.changed = {"me": Who(0, "root")}
    assert sandbox.machine.as_root("a", "b").text == "a && b"
    sandbox.changed = {"me": Who(1, "ada")}
    assert sandbox.machine.as_root("a", "b").text == "sudo a && sudo b"


@pytest.mark.requirement("I4-doctor-fixes")
def test_the_interpreter_is_the_one_that_runs_us():
    from edge.doctor.this_machine import this_machine

    machine = this_machine(dict(os.environ))
    assert machine.interpreter == sys.executable
    assert machine.registry.name == "tool_registry.json"
    assert machine.root == Path("/")


@pytest.mark.requirement("I4-doctor-fixes")
def test_a_fix_needs_root_only_where_the_user_may_not_write(tmp_path):
    machine = Machine(env={}, me=Who(1000, "wearer"), sockets=())
    assert machine.by_writer(tmp_path, "rm x") == run("rm x")
    assert machine.by_writer(tmp_path / "missing", "rm x") == run("sudo rm x")
