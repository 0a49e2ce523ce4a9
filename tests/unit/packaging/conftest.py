"""What packaging's tests share: its scripts on the path, and wheels so small that an
installation takes a moment.
"""

import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "systemd" / "packaging"))

from venv_tree import EXTRAS  # noqa: E402 - the path comes first

VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
PYTHON = f"/usr/bin/python{VERSION}"


def tiny_wheel(folder, version="0.1.0"):
    name = f"glassd-{version}"
    extras = "".join(f"Provides-Extra: {extra}\n" for extra in EXTRAS.split(","))
    with zipfile.ZipFile(folder / f"{name}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("edge/__init__.py", "")
        wheel.writestr("edge/cli.py", f"def main():\n    print('glassd {version}')\n    return 3\n")
        info = f"{name}.dist-info"
        wheel.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: glassd\nVersion: "
            f"{version}\nLicense-Expression: Apache-2.0\n{extras}",
        )
        wheel.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(
            f"{info}/RECORD",
            f"edge/__init__.py,,\nedge/cli.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n",
        )
    return folder


@pytest.fixture(scope="session")
def wheels(tmp_path_factory):
    return tiny_wheel(tmp_path_factory.mktemp("wheels"))
