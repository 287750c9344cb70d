"""Pages that several programs write: none takes away what another one wrote."""

from pathlib import Path

from tests.support.sections import joined, sections_of, write_section

ORDER = ("faults", "gaps")


def test_a_section_is_written_again_and_the_others_stay(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    write_section(page, "gaps", "of gaps", ORDER)
    write_section(page, "faults", "of faults\n\nand more\n", ORDER)
    write_section(page, "gaps", "of gaps, again\n\n", ORDER)
    assert sections_of(page.read_text()) == {
        "faults": "of faults\n\nand more\n",
        "gaps": "of gaps, again\n",
    }
    assert page.read_text().startswith("<!-- faults -->\n")


def test_a_page_without_marks_was_its_first_section_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n\nof faults\n")
    write_section(page, "gaps", "of gaps", ORDER)
    assert sections_of(page.read_text())["faults"] == "# A page\n\nof faults\n"


def test_a_page_is_what_its_sections_say() -> None:
    told = {"faults": "x\n", "gaps": "y\n"}
    assert sections_of(joined(told, ORDER)) == told
