"""The socket of a demo pair: the usual one, unless a daemon has it."""

import socket

from edge.demo.mock_pair import _free_socket


def test_a_demo_pair_uses_the_usual_socket(tmp_path):
    env = {"XDG_RUNTIME_DIR": str(tmp_path / "run")}
    assert _free_socket(env, tmp_path) == tmp_path / "run" / "glassd" / "control.sock"


def test_a_demo_pair_leaves_a_running_daemon_alone(tmp_path):
    env = {"RUNTIME_DIRECTORY": str(tmp_path)}
    with socket.socket(socket.AF_UNIX) as theirs:
        theirs.bind(str(tmp_path / "control.sock"))
        theirs.listen()
        assert _free_socket(env, tmp_path / "out") == tmp_path / "out" / "control.sock"


def test_a_demo_pair_replaces_a_dead_daemons_socket(tmp_path):
    env = {"RUNTIME_DIRECTORY": str(tmp_path)}
    with socket.socket(socket.AF_UNIX) as theirs:
        theirs.bind(str(tmp_path / "control.sock"))
    assert _free_socket(env, tmp_path / "out") == tmp_path / "control.sock"


def test_a_demo_pair_avoids_a_foreign_folder(tmp_path):
    (tmp_path / "file").touch()
    assert (
        _free_socket({"RUNTIME_DIRECTORY": str(tmp_path / "file")}, tmp_path)
        == tmp_path / "control.sock"
    )
