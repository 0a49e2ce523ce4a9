"""The tables of supported glasses are what the catalogue says."""

from pathlib import Path

import pytest

from firmware_bridge.catalog import supported
from firmware_bridge.support import BEGIN, END, WITH, main, placed, proofs, table

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "supported-glasses.md"


@pytest.mark.requirement("I4-support-table")
def test_the_page_holds_the_tables_of_this_catalogue():
    assert main(["--check", str(PAGE)]) == 0


def test_the_readme_names_the_makers_of_all_products():
    readme = (ROOT / "README.md").read_text()
    products = [model for model in supported() if model.simulator]
    missing = [model.title for model in products if not _named(model, readme)]
    assert missing == []


def _named(model, readme):
    return model.title.split()[0] in readme


def test_every_proof_names_a_test_that_exists():
    for model in supported():
        for proof in model.proofs:
            file, _, name = proof.test.partition("::")
            assert f"def {name}(" in (ROOT / file).read_text(), proof


def test_every_product_says_what_its_features_were_tried_with():
    rows = {line.split(" | ")[0].strip("| "): line for line in proofs().splitlines()[2:]}
    assert list(rows) == [model.title for model in supported() if model.simulator]
    assert all("simulator" in row for row in rows.values())
    g1 = rows["Even Realities G1"].strip("| ").split(" | ")[1:]
    assert ["simulator" in cell for cell in g1] == [True, True, True, False, False, True, True]


def test_every_model_has_a_row_with_what_it_can_do():
    rows = {line.split(" | ")[1].strip("`"): line for line in table().splitlines()[2:]}
    assert list(rows) == [model.key for model in supported()]
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
    tables = f"{table()}\n\n{WITH}\n\n{proofs()}"
    assert page.read_text() == f"before\n{BEGIN}\n{tables}\n{END}\nafter\n"


def test_a_page_without_marks_is_an_error_that_names_them():
    with pytest.raises(ValueError, match="supported glasses"):
        placed("nothing here")
