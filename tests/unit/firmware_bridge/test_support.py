"""The README's table of supported glasses is what the catalogue says."""

from pathlib import Path

import pytest

from firmware_bridge.catalog import MODELS
from firmware_bridge.support import BEGIN, END, main, placed, table

README = Path(__file__).parents[3] / "README.md"


@pytest.mark.requirement("I4-support-table")
def test_the_readme_holds_the_table_of_this_catalogue():
    assert main(["--check", str(README)]) == 0


def test_every_model_has_a_row_with_what_it_can_do():
    rows = {line.split(" | ")[1].strip("`"): line for line in table().splitlines()[2:]}
    assert list(rows) == [model.key for model in MODELS]
    assert "two, one a side" in rows["even_g1"]
    assert "576 × 136, 1 bit, pictures | 5 lines of 488 px | lc3 | – | – |" in rows["even_g1"]
    assert "what it announces" in rows["reference"]


def test_a_stale_table_fails_the_check_and_is_written_again(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    assert main(["--check", str(page)]) == 1
    assert "stale" in capsys.readouterr().err
    assert main([str(page)]) == 0
    assert main(["--check", str(page)]) == 0
    assert page.read_text() == f"before\n{BEGIN}\n{table()}\n{END}\nafter\n"


def test_a_page_without_marks_is_an_error_that_names_them():
    with pytest.raises(ValueError, match="supported glasses"):
        placed("nothing here")
