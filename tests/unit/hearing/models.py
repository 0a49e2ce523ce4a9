"""Models of recognition for tests."""

import base64
import importlib.util
import shutil
from pathlib import Path

import pytest


def moonshine_for_sherpa(folder: Path) -> Path:
    """Fill a folder with the model of the extra `ears` in the form that sherpa-onnx reads."""
    pytest.importorskip("sherpa_onnx")
    found = importlib.util.find_spec("moonshine_voice")
    if found is None or not found.submodule_search_locations:
        pytest.skip("the extra `ears` is not installed")
    source = Path(found.submodule_search_locations[0], "assets/tiny-en")
    for name in "encoder_model.ort", "decoder_model_merged.ort":
        shutil.copy(source / name, folder)
    pieces = (source / "tokenizer.bin").read_bytes()
    lines, at = [], 0
    while at < len(pieces):
        size = pieces[at]
        at += 1
        if size >= 128:
            size += (pieces[at] - 1) * 128
            at += 1
        word = pieces[at : at + size].replace("▁".encode(), b" ") or b" "
        lines.append(f"{base64.b64encode(word).decode()} {len(lines)}\n")
        at += size
    (folder / "tokens.txt").write_text("".join(lines))
    return folder
