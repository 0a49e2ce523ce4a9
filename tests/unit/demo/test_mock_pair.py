"""Where the socket of a borrowed pair of glasses lies: where every verb looks, unless a daemon
is there already.
"""

import socket

from edge.demo.mock_pair import _free_socket


def test_a_borrowed_pair_is_where_every_verb_looks(tmp_path):
    env = {"XDG_RUNTIME_DIR": str(tmp_path / "run")}
    assert _free_socket(env, tmp_path) == tmp_path / "run" / "glassd" / "control.sock"


def test_a_borrowed_pair_leaves_a_running_daemon_where_it_is(tmp_path):
    env = {"RUNTIME_DIRECTORY": str(tmp_path)}
    with socket.socket(socket.AF_UNIX) as theirs:
        theirs.bind(str(tmp_path / "control.sock"))
        theirs.listen()
        assert _free_socket(env, tmp_path / "out") == tmp_path / "out" / "control.sock"


def test_a_borrowed_pair_takes_the_place_of_a_daemon_that_died(tmp_path):
    env = {"RUNTIME_DIRECTORY": str(tmp_path)}
    with socket.socket(socket.AF_UNIX) as theirs:
        theirs.bind(str(tmp_path / "control.sock"))
    assert _free_socket(env, tmp_path / "out") == tmp_path / "control.sock"


def test_a_borrowed_pair_keeps_out_of_a_folder_that_is_not_ours(tmp_path):
    (tmp_path / "file").touch()
    assert (
        _free_socket({"RUNTIME_DIRECTORY": str(tmp_path / "file")}, tmp_path)
        == tmp_path / "control.sock"
    )
