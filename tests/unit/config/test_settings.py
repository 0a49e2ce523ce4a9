"""The settings: every wrong one is reported with file, key, problem and fix; secrets stay
secret.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from edge.config import model
from edge.config.errors import every_key
from edge.config.load import MAX_FILE, load
from edge.config.model import BadSettings, MicrophoneConfig, Settings
from edge.core import permissions
from edge.runtime import paths
from edge.runtime.wyoming import Address
from firmware_bridge.messages import Gesture

NOBODY = {"HOME": "/nonexistent"}
SAMPLE = Path(__file__).parents[3] / "systemd" / "glassd.toml"


def write(tmp_path, text, *, version="version = 1\n"):
    file = tmp_path / "glassd.toml"
    file.write_text(version + text, encoding="utf-8")
    return file


def complaint(tmp_path, text, env=NOBODY, **more):
    with pytest.raises(BadSettings) as caught:
        load(write(tmp_path, text, **more), env)
    return str(caught.value)


# ------------------------------------------------------------------ what is right


def test_without_any_file_everything_has_its_default():
    found = load(None, NOBODY)
    assert found == Settings()
    assert found.source is None
    assert (
        found.uplink.keepalive_s,
        found.uplink.pool,
        found.edge.tenant,
        found.glasses.radio,
    ) == (8, "tools", "default", "bluez")


def test_a_file_is_read_and_remembered(tmp_path):
    file = write(
        tmp_path,
        '[uplink]\nhost = "broker.local"\nkeepalive_s = 20\n[policy]\ndisabled_tools = ["a:b"]\n',
    )
    found = load(file, NOBODY)
    assert (found.uplink.host, found.uplink.keepalive_s, found.policy.disabled_tools) == (
        "broker.local",
        20,
        ("a:b",),
    )
    assert found.source == file


def test_cloud_may_accepts_words_tools_and_packages(tmp_path):
    assert Settings().policy.cloud_may == permissions.STOCK
    words = [
        "glasses",
        "declared",
        "notes:*",
        "calendar:get_availability",
        "my:weather",
        "my:*",
        "*",
    ]
    assert load(
        write(tmp_path, f"[policy]\ncloud_may = {json.dumps(words)}\n"), NOBODY
    ).policy.cloud_may == tuple(words)
    assert load(write(tmp_path, "[policy]\ncloud_may = []\n"), NOBODY).policy.cloud_may == ()
    with pytest.raises(BadSettings, match=r"GLASSD_POLICY__CLOUD_MAY: policy\.cloud_may: "):
        load(None, {**NOBODY, "GLASSD_POLICY__CLOUD_MAY": "glases"})


def test_a_whole_number_is_good_enough_for_seconds(tmp_path):
    assert load(write(tmp_path, "[cloud]\nrefresh_s = 60\n"), NOBODY).cloud.refresh_s == 60.0


def test_capabilities_are_flat_however_they_are_written(tmp_path):
    text = (
        '[glasses]\ncapabilities = { display.lines = 4, "display.width" = 100, camera = false }\n'
    )
    assert load(write(tmp_path, text), NOBODY).glasses.capabilities == {
        "display.lines": 4,
        "display.width": 100,
        "camera": False,
    }


@pytest.mark.parametrize(
    ("text", "port"),
    [("", 8883), ("tls = false\n", 1883), ("port = 9\n", 9), ("tls = false\nport = 9\n", 9)],
)
def test_the_port_follows_tls_unless_it_is_given(tmp_path, text, port):
    assert load(write(tmp_path, "[uplink]\n" + text), NOBODY).uplink.port_in_use == port


@pytest.mark.parametrize(
    "server",
    [
        "",
        "tcp://127.0.0.1:10200",
        "tcp://box.local:1",
        "tcp://[::1]:10200/",
        "unix:///run/tts.sock",
    ],
)
def test_the_voice_asks_the_server_that_is_configured(tmp_path, server):
    found = load(write(tmp_path, f'[audio]\nserver = "{server}"\n'), NOBODY).audio
    assert (found.server, found.volume, found.preroll_ms) == (server, 80, 300)
    assert not server or Address.parse(server, 1), "what is accepted can be read"


@pytest.mark.parametrize(
    "recogniser", ["auto", "off", "moonshine", "tcp://127.0.0.1:10300", "unix:///run/stt.sock"]
)
def test_the_microphone_takes_these_recognisers(tmp_path, recogniser):
    text = f'[microphone]\nrecogniser = "{recogniser}"\nwake_phrase = "  Hello  Glasses "\n'
    found = load(write(tmp_path, text), NOBODY).microphone
    assert (found.allow, found.recogniser, found.wake_phrase) == (True, recogniser, "hello glasses")


def test_any_gesture_can_be_push_to_talk():
    known = get_args(get_type_hints(MicrophoneConfig)["push_to_talk"])
    assert {*known} == {"auto", "off", *map(str, Gesture)}


def test_settings_cannot_be_changed_later():
    with pytest.raises(AttributeError, match="immutable"):
        Settings().uplink.host = "x"


# ------------------------------------------------------------------ where they come from


def test_the_named_file_wins_then_the_variable_then_the_places(tmp_path, monkeypatch):
    def file(name, tenant):
        path = tmp_path / name / "glassd" / "glassd.toml"
        path.parent.mkdir(parents=True)
        path.write_text(f'version = 1\n[edge]\ntenant = "{tenant}"\n')
        return path

    named, variable, system, own = (
        file("n", "named"),
        file("v", "variable"),
        file("s", "system"),
        file("o", "own"),
    )
    monkeypatch.setattr(paths, "_SYSTEM_CONFIG", system)
    env = {"GLASSD_CONFIG": str(variable), "XDG_CONFIG_HOME": str(own.parents[1])}
    assert load(named, env).edge.tenant == "named"
    assert load(None, env).edge.tenant == "variable"
    assert load(None, {"XDG_CONFIG_HOME": str(own.parents[1])}).edge.tenant == "system"
    system.unlink()
    assert load(None, {"XDG_CONFIG_HOME": str(own.parents[1])}).edge.tenant == "own"
    assert load(None, {"HOME": "/nonexistent"}).edge.tenant == "default"


def test_the_environment_overrules_any_key(tmp_path):
    file = write(tmp_path, '[uplink]\nhost = "file"\n')
    found = load(
        file,
        {
            "GLASSD_UPLINK__HOST": "env",
            "GLASSD_UPLINK__PORT": "1884",
            "GLASSD_UPLINK__TLS": "off",
            "GLASSD_CLOUD__REFRESH_S": "2.5",
            "GLASSD_POLICY__DISABLED_TOOLS": "a:b, c:d",
            "GLASSD_LOG__LEVEL": "debug",
            "GLASSD_EDGE__ID": "007",
            "GLASSD_SOCKET": "/not/a/setting",
        },
    )
    assert (found.uplink.host, found.uplink.port, found.uplink.tls) == ("env", 1884, False)
    assert (found.cloud.refresh_s, found.policy.disabled_tools, found.log.level) == (
        2.5,
        ("a:b", "c:d"),
        "debug",
    )
    assert found.edge.id == "007"


@pytest.mark.parametrize(("section", "key"), every_key(Settings()))
def test_every_key_can_be_given_by_environment(section, key):
    default = getattr(getattr(Settings(), section), key)
    text = (
        default
        if isinstance(default, str)
        else json.dumps(list(default) if isinstance(default, tuple) else default)
    )
    if default == {}:
        text = "{}"
    assert load(None, {**NOBODY, f"GLASSD_{section}__{key}".upper(): text}) == Settings()


@pytest.mark.requirement("M-settings")
def test_a_wrong_variable_is_reported_with_the_nearest():
    with pytest.raises(BadSettings) as caught:
        load(None, {**NOBODY, "GLASSD_UPLINK__HSOT": "x", "GLASSD_UPLINK__PORT": "many"})
    first, second = str(caught.value).splitlines()
    assert (
        first == "GLASSD_UPLINK__HSOT: no setting has this name; did you mean GLASSD_UPLINK__HOST?"
    )
    assert second == (
        "GLASSD_UPLINK__PORT: uplink.port: must be a whole number, "
        'got "many"; the default is port = 0'
    )


# ------------------------------------------------------------------ what is wrong


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[uplink]\nhots = 1\n", "uplink.hots: unknown key; did you mean uplink.host?"),
        (
            "[uplink]\nkeepalive = 1\n",
            "uplink.keepalive: unknown key; did you mean uplink.keepalive_s?",
        ),
        (
            "[edge]\nkeepalive_s = 1\n",
            "edge.keepalive_s: unknown key; did you mean uplink.keepalive_s?",
        ),
        (
            "[glasses]\nreconnect_min_s = 1\n",
            "glasses.reconnect_min_s: unknown key; did you mean uplink.reconnect_min_s?",
        ),
        ('host = "x"\n', "host: unknown key; did you mean uplink.host?"),
        ("[uplnik]\n", "uplnik: unknown section; did you mean uplink?"),
        ("[edge]\nzzz = 1\n", "edge.zzz: unknown key; known here: id, user_id, tenant, state_dir"),
        (
            "[uplink]\nport = true\n",
            "uplink.port: must be a whole number, got true; the default is port = 0",
        ),
        ("[uplink]\nport = 8883.5\n", "uplink.port: must be a whole number, got 8883.5"),
        ("[uplink]\nport = 70000\n", "uplink.port: must be at most 65535, got 70000"),
        (
            '[uplink]\ntls = "yes"\n',
            'uplink.tls: must be true or false, got "yes"; the default is tls = true',
        ),
        ("[uplink]\nhost = 5\n", "uplink.host: must be text in quotes, got 5"),
        ('[uplink]\nhost = "mqtts://b:8883"\n', "uplink.host: must be a bare host name"),
        ('[uplink]\nhost = "b:8883"\n', "uplink.host: must be a bare host name"),
        ('[uplink]\nhost = "me:word@b:8883"\n', "uplink.host: must be a bare host name"),
        ('[uplink]\nhost = "me@b"\n', "uplink.host: must be a bare host name"),
        ("[audio]\nvolume = 101\n", "audio.volume: must be at most 100, got 101"),
        ("[audio]\npreroll_ms = -1\n", "audio.preroll_ms: must be at least 0, got -1"),
        (
            '[microphone]\nrecogniser = "whisper"\n',
            "microphone.recogniser: must be auto, moonshine, sherpa, off, or the address of",
        ),
        (
            '[microphone]\nrecogniser = "sherpa"\n',
            "microphone: recogniser = sherpa needs model, the folder of its model",
        ),
        ('[microphone]\nmodel = "models"\n', "microphone.model: must be an absolute path"),
        ('[microphone]\nlanguage = "Klingon"\n', "microphone.language: 'Klingon' is not a known"),
        (
            '[microphone]\nwake_phrase = "hey"\n',
            "wake_phrase: must have 5 to 40 letters",
        ),
        (
            '[microphone]\nwake_phrase = "r2 d2 x"\n',
            "wake_phrase: must be words of letters",
        ),
        ('[microphone]\nyes_by_voice = ["*"]\n', "microphone.yes_by_voice: '*' is not a tool name"),
        ('[microphone]\npush_to_talk = "wink"\n', "microphone.push_to_talk: "),
        *(
            (
                f'[audio]\nserver = "{bad}"\n',
                "audio.server: must be tcp://HOST:PORT or unix:///PATH, for example tcp://",
            )
            for bad in (
                "localhost",
                "localhost:10200",
                "http://box:10200",
                "tcp://box",
                "tcp://box:0",
                "tcp://box:65536",
                "tcp://me:word@box:10200",
                "tcp://box:10200/path",
                "unix://relative",
                "unix:///",
            )
        ),
        (f'[audio]\nserver = "unix:///{"x" * 107}"\n', "audio.server: must have at most 107 bytes"),
        ('[uplink]\ncert_file = "relative.pem"\n', "uplink.cert_file: must be an absolute path"),
        ('[uplink]\ncert_file = "/x"\n', "uplink: cert_file and key_file are needed together"),
        ('[uplink]\npassword_file = "/x"\n', "uplink: password_file needs a username"),
        (
            '[uplink]\ntls = false\nca_file = "/x"\n',
            "uplink: ca_file and cert_file need tls = true",
        ),
        ("[uplink]\nreconnect_min_s = 100\n", "uplink: reconnect_min_s must not be larger"),
        ("[glasses]\nbackoff_min_s = 100\n", "glasses: backoff_min_s must not be larger"),
        (
            "[glasses]\nscan_s = 0\n",
            "glasses.scan_s: must be more than 0, got 0; the default is scan_s = 10.0",
        ),
        (
            '[glasses]\nradio = "wifi"\n',
            "glasses.radio: must be bluez, usb:N, tcp:HOST:PORT or inproc",
        ),
        ('[glasses]\naddress = "C0:FF"\n', "glasses.address: must be an address like"),
        ("[glasses]\ncapabilities = 5\n", "glasses.capabilities: must be a table, got 5"),
        ('[edge]\ntenant = "a/b"\n', "edge.tenant: may hold letters, digits"),
        ('[edge]\nid = "#"\n', "edge.id: may hold letters, digits"),
        ('[cloud]\nurl = "ftp://x"\n', "cloud.url: must begin with https://"),
        (
            '[cloud]\nurl = "https://me:word@x/"\n',
            "cloud.url: must not hold a password; put it into a file",
        ),
        (
            '[calendar]\nurl = "https://x?me@y"\n[cloud]\nurl = "https://h:99999/"\n',
            "cloud.url: must have a port from 1 to 65535",
        ),
        (
            '[calendar]\nurl = "https://[::1]:x/dav"\n',
            "calendar.url: must have a port from 1 to 65535",
        ),
        (
            '[log]\nlevel = "loud"\n',
            "log.level: must be one of 'debug', 'info', 'warning' or 'error', got \"loud\"",
        ),
        ("log = 5\n", "log: must be a section, got 5; write [log] on its own line"),
        (
            '[policy]\ncloud_may = ["glases"]\n',
            (
                'policy.cloud_may: "glases" is neither a tool nor one of '
                'glasses, declared; did you mean "glasses"?'
            ),
        ),
        (
            '[policy]\ncloud_may = ["notes"]\n',
            (
                'policy.cloud_may: "notes" is neither a tool nor one of '
                'glasses, declared; did you mean "notes:*"?'
            ),
        ),
        (
            '[policy]\ncloud_may = ["kb:serch"]\n',
            'policy.cloud_may: "kb:serch" is no tool; did you mean "kb:search"?',
        ),
        (
            '[policy]\ncloud_may = ["%%%%"]\n',
            'write for example "notes:*" or "calendar:get_availability"',
        ),
        (
            '[policy]\ncloud_may = "glasses"\n',
            (
                'policy.cloud_may: must be a list, got "glasses"; '
                'the default is cloud_may = ["glasses", "declared"]'
            ),
        ),
        ("[policy]\ndisabled_tools = 5\n", "policy.disabled_tools: must be a list, got 5"),
        (
            "[policy]\ndisabled_tools = [5]\n",
            "policy.disabled_tools: must be text in quotes, got 5",
        ),
    ],
)
def test_a_wrong_key_is_reported_with_problem_and_fix(tmp_path, text, said):
    line = complaint(tmp_path, text)
    assert line.startswith(f"{tmp_path}/glassd.toml: ")
    assert said in line
    assert "\n" not in line


def test_all_problems_are_reported_at_once(tmp_path):
    lines = complaint(
        tmp_path, "[uplink]\nport = true\nhots = 1\n[edge]\ntenant = 5\n"
    ).splitlines()
    assert len(lines) == 3


def test_a_completely_wrong_file_is_not_reported_line_by_line(tmp_path):
    lines = complaint(tmp_path, "[edge]\n" + "".join(f"k{n} = 1\n" for n in range(50))).splitlines()
    assert len(lines) == 21
    assert lines[-1].endswith("and 30 more")


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("", "version: missing; write `version = 1` as the first line"),
        ("version = 2\n", "this file is for a newer glassd; update glassd"),
        ("version = 0\n", "write `version = 1`"),
        ("version = true\n", "write `version = 1`"),
        ('version = "1"\n', "write `version = 1`"),
    ],
)
def test_a_file_must_say_its_version(tmp_path, version, said):
    assert said in complaint(tmp_path, "", version=version)


def test_broken_toml_names_the_line(tmp_path):
    assert "is not valid TOML" in complaint(tmp_path, "[uplink\n")
    assert "line 2" in complaint(tmp_path, "[uplink\n")


def test_an_unreadable_file_is_reported(tmp_path):
    (tmp_path / "b").write_bytes(b"version = 1\n# \xff\n")
    (tmp_path / "l").write_bytes(b"version = 1\n" + b"#" * MAX_FILE)
    for name, said in (
        ("b", "is not UTF-8"),
        ("l", "larger than 256 KiB"),
        ("none", "there is no such file"),
    ):
        with pytest.raises(BadSettings, match=said):
            load(tmp_path / name, NOBODY)
    with pytest.raises(BadSettings, match="cannot be read"):
        load(tmp_path, NOBODY)


# ------------------------------------------------------------------ secrets


def test_a_password_in_the_file_is_refused_and_not_repeated(tmp_path):
    line = complaint(tmp_path, '[uplink]\npassword = "hunter2"\n')
    assert "did you mean uplink.password_file?" in line
    assert "hunter2" not in line


def test_a_password_in_the_url_is_refused_and_not_repeated(tmp_path):
    line = complaint(tmp_path, '[cloud]\nurl = "https://ann:hunter2@x.example"\n')
    assert "must not hold a password" in line
    assert "hunter2" not in line


def test_a_secrets_file_that_is_not_there_stops_the_start(tmp_path):
    line = complaint(tmp_path, f'[cloud]\ntoken_file = "{tmp_path}/none"\n')
    assert f"cloud.token_file: {tmp_path}/none: no such file or directory; correct the path" in line
    assert "cloud.token_file" in complaint(tmp_path, f'[cloud]\ntoken_file = "{tmp_path}"\n')


def test_a_secret_is_read_from_its_file_else_from_the_credential_else_there_is_none(tmp_path):
    (tmp_path / "file").write_text("from file\n")
    (tmp_path / "glassd-mqtt-password").write_text("from systemd\r\n")
    env = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    assert model.read_secret(str(tmp_path / "file"), "glassd-mqtt-password", env) == "from file"
    assert model.read_secret("", "glassd-mqtt-password", env) == "from systemd"
    assert model.credential("", "glassd-mqtt-password", env) == tmp_path / "glassd-mqtt-password"
    assert model.read_secret("", "glassd-cloud-token", env) is None
    assert model.read_secret("", "glassd-mqtt-password", {}) is None


@pytest.mark.parametrize(
    ("content", "said"), [(b"x" * 70_000, "larger than 64 KiB"), (b"\xff", "is not text")]
)
def test_an_impossible_secret_is_reported(tmp_path, content, said):
    (tmp_path / "s").write_bytes(content)
    with pytest.raises(BadSettings, match=said):
        model.read_secret(str(tmp_path / "s"), "x", {})
    with pytest.raises(BadSettings, match="cannot be read"):
        model.read_secret(str(tmp_path / "none"), "x", {})


# ------------------------------------------------------------------ the sample


def test_the_sample_is_a_good_configuration_and_changes_nothing():
    assert load(SAMPLE, NOBODY) == Settings()


def test_the_sample_shows_every_key_with_its_default(tmp_path):
    text = re.sub(r"^# (\w+ = )", r"\1", SAMPLE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    file = tmp_path / "all.toml"
    file.write_text(text, encoding="utf-8")
    assert load(file, NOBODY) == Settings()
    document = tomllib.loads(text)
    assert [
        (s, k) for s, table in document.items() if s not in ("version", "tool") for k in table
    ] == every_key(Settings())


# ------------------------------------------------------------------ places and names


def test_systemds_directories_come_first():
    env = {
        "STATE_DIRECTORY": "/var/lib/glassd:/x",
        "RUNTIME_DIRECTORY": "/run/glassd",
        "XDG_RUNTIME_DIR": "/run/user/1",
        "HOME": "/h",
    }
    assert Settings().state_dir(env) == Path("/var/lib/glassd")
    assert Settings().socket_path(env) == Path("/run/glassd/control.sock")


def test_without_systemd_the_users_own_directories_are_used():
    env = {"HOME": "/h", "XDG_RUNTIME_DIR": "/run/user/1"}
    assert Settings().state_dir(env) == Path("/h/.local/state/glassd")
    assert Settings().state_dir({**env, "XDG_STATE_HOME": "/s"}) == Path("/s/glassd")
    assert Settings().socket_path(env) == Path("/run/user/1/glassd/control.sock")


def test_without_a_login_session_the_socket_lies_where_clients_look_too():
    env = {"HOME": "/h"}
    for uid in (0, 1000):
        assert paths.runtime_dir(env, uid=uid) / "control.sock" in paths.client_sockets(env)


def test_settings_overrule_the_places(tmp_path):
    found = load(
        write(tmp_path, '[edge]\nstate_dir = "/s"\n[control]\nsocket = "/c.sock"\n'), NOBODY
    )
    assert (found.state_dir({}), found.socket_path({})) == (Path("/s"), Path("/c.sock"))
    assert found.owner_socket_path({}) == Path("/c-owner.sock")


def test_clients_look_in_the_documented_places():
    assert paths.client_sockets({"GLASSD_SOCKET": "/x.sock", "HOME": "/h"}) == (Path("/x.sock"),)
    assert paths.client_sockets({"HOME": "/h"}, uid=1000)[0] == Path(
        "/run/user/1000/glassd/control.sock"
    )  # an agent's child
    first, second, *_ = paths.client_sockets({"XDG_RUNTIME_DIR": "/run/user/1", "HOME": "/h"})
    assert (first, second) == (
        Path("/run/user/1/glassd/control.sock"),
        Path("/run/glassd/control.sock"),
    )


@pytest.mark.parametrize("named", [True, False])
def test_an_unreachable_configuration_does_not_count_as_missing(tmp_path, monkeypatch, named):
    closed = tmp_path / "closed" / "glassd.toml"

    def exists(path):
        if path == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return False

    monkeypatch.setattr(paths, "_SYSTEM_CONFIG", closed)
    monkeypatch.setattr(Path, "exists", exists)
    with pytest.raises(
        BadSettings, match="cannot be looked at: permission denied; ask for the right to enter"
    ):
        load(closed if named else None, NOBODY)
