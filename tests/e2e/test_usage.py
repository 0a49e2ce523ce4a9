"""Wrong usage of the verbs that run on: exit code 2, one sentence with its cure, never a
traceback.
"""

import socket
import subprocess
import sys

import pytest

from tests.e2e.processes import CLI


def run(*words, timeout=30):
    return subprocess.run(
        [*CLI, *words], capture_output=True, text=True, timeout=timeout, check=False
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("sim", "mock:display", "--radio", "foo"), "radio 'foo' is not known"),
        (("sim", "mock:display", "--radio", "tcp:nope"), "tcp:nope"),
        (("sim", "mock:display", "--script", "/nonexistent"), "there is no such script"),
        (("sim", "nope"), "there are mock:display"),
        (("devcloud", "--broker", "nonsense"), "HOST:PORT"),
        (("devcloud", "--broker", "embedded:x"), "no port number"),
        (("demo", "--script", "/nonexistent"), "cannot read the script"),
        (("call", "a:b", "--ttl", "abc"), "at most 86400 seconds"),
        (("calls", "--limit", "x"), "from 1 to 1000"),
    ],
)
def test_a_mistyped_word_is_2_with_its_cure(words, says):
    done = run(*words)
    assert done.returncode == 2, done.stderr
    assert says in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        (("sim", "mock:full", "--radio", "foo"), "bumble"),
        (("sim", "mock:full", "--fault", "foo"), "bumble"),
        (("devcloud", "--http", "foo"), "edge.devcloud.main"),
        (("devcloud", "--worker"), "edge.devcloud.main"),
    ],
)
def test_a_mistyped_word_is_found_before_anything_heavy_is_loaded(words, heavy):
    code = (
        "import sys; from edge import cli; code = cli.main(sys.argv[2:]); "
        "sys.exit(f'{sys.argv[1]} was loaded' if sys.argv[1] in sys.modules else code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, heavy, *words],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2, done.stderr


def test_a_mistyped_broker_is_named_also_where_the_port_is_taken(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run(
            "devcloud",
            "--broker",
            "nonsense",
            "--http",
            f"127.0.0.1:{taken.getsockname()[1]}",
            "--state",
            str(tmp_path / "state"),
        )
    assert done.returncode == 2, done.stderr
    assert "broker: 'nonsense'" in done.stderr
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (
            '[glasses]\nmodel = "mock:foo"',
            "glasses.model: there is no model 'mock:foo'; known: even_g1",
        ),
        ('[control]\nsocket = "/' + "x" * 120 + '"', "at most 107 bytes"),
        ('[edge]\nstate_dir = "/etc/passwd"', "must be a directory"),
    ],
)
def test_a_configuration_that_cannot_work_is_2_so_that_systemd_does_not_try_for_ever(
    tmp_path, config, says
):
    file = tmp_path / "glassd.toml"
    file.write_text(f"version = 1\n{config}\n")
    done = run("run", "--config", str(file))
    assert done.returncode == 2, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.enable_socket
def test_a_cloud_whose_port_is_taken_says_which_and_how_to_have_another():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run("devcloud", "--http", place)
    assert done.returncode == 1
    assert (
        f"error: {place}: another program listens there already\nnext: "
        " choose another, or any that is free: --http 127.0.0.1:0"
    ) in done.stderr


def test_a_registry_that_was_never_built_is_named(tmp_path):
    done = run("registry", "check", "--file", str(tmp_path / "none.json"))
    assert done.returncode == 1
    assert "there is no such file" in done.stderr
