"""Where the owner's tools lie, and which secrets they may have."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from edge.config import folders
from edge.config.model import Settings, ToolsConfig
from edge.daemon import user_tools

SETTINGS = replace(Settings(), tools=ToolsConfig(env=("ALLOWED",)))


@pytest.mark.requirement("S3-12")
def test_a_secret_is_a_credential_or_an_allowed_variable_and_nothing_else(tmp_path):
    (tmp_path / "FILED").write_text("from a file\n")
    (tmp_path / "ALLOWED").write_text("the credential comes first\n")
    (tmp_path / "glassd-cloud-token").write_text("not theirs\n")
    (tmp_path / "EMPTY").write_text("\n")
    hidden = []
    env = {"CREDENTIALS_DIRECTORY": str(tmp_path), "ALLOWED": "x", "PATH": "/bin", "EMPTY": "y"}
    secret = user_tools.secrets(SETTINGS, env, hidden.append)
    assert (secret("FILED"), secret("ALLOWED")) == ("from a file", "the credential comes first")
    assert [
        secret(name) for name in ("PATH", "glassd-cloud-token", "EMPTY", "../FILED", "GONE")
    ] == [None] * 5
    assert (
        user_tools.secrets(SETTINGS, {"ALLOWED": "by name"}, hidden.append)("ALLOWED") == "by name"
    )
    assert hidden == ["from a file", "the credential comes first", "by name"]


def test_a_credential_that_cannot_be_read_is_as_good_as_none(tmp_path, caplog):
    (tmp_path / "BAD").write_bytes(b"\xff\xfe")
    assert (
        user_tools.secrets(SETTINGS, {"CREDENTIALS_DIRECTORY": str(tmp_path)}, lambda _: None)(
            "BAD"
        )
        is None
    )
    assert "a credential of an own tool" in caplog.text


def test_the_folder_is_beside_the_configuration_and_without_one_where_it_would_be():
    env = {"HOME": "/home/ann"}
    there = folders.of_user_tools(
        replace(SETTINGS, source=Path("/srv/c/glassd.toml"), tools=ToolsConfig(folders=("/more",))),
        env,
    )
    assert there == (Path("/srv/c/tools.d"), Path("/more"))
    assert folders.of_user_tools(Settings(), env) == (
        Path("/etc/glassd/tools.d"),
        Path("/home/ann/.config/glassd/tools.d"),
    )
