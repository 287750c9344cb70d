"""What users read is plain: short sentences, one sense a word. Pages that were renovated stay so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.prose import (
    BANNED,
    RENOVATED,
    anchors,
    banned_words,
    mean,
    percentile,
    sentences,
    sentences_of_tables,
    words_in,
)

ROOT = Path(__file__).parents[2]
DECISIONS = tuple(f"docs/decisions/{path.name}" for path in sorted((ROOT / "docs/decisions").glob("0*.md")))
MADE_FROM_CODE = ("docs/command-line.md", "docs/configuration.md", "docs/reference/exit-codes.md")
PLAIN = (*RENOVATED, *DECISIONS, *MADE_FROM_CODE)
MEAN_WORDS = 17
P90_WORDS = 28
LONGEST_IN_A_TABLE = 30
MOST_LINES_OF_README = 120


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def lengths_of(page: str) -> list[int]:
    return [words_in(each) for each in sentences(text_of(page))]


def test_each_page_of_operations_is_renovated() -> None:
    pages = {f"docs/operations/{path.name}" for path in (ROOT / "docs/operations").glob("*.md")}
    assert pages
    assert pages <= set(RENOVATED)


@pytest.mark.parametrize("page", PLAIN)
def test_sentences_are_short(page: str) -> None:
    lengths = lengths_of(page)
    assert mean(lengths) <= MEAN_WORDS
    assert percentile(lengths, 0.9) <= P90_WORDS


@pytest.mark.parametrize("page", PLAIN)
def test_sentences_of_tables_are_short(page: str) -> None:
    long = [each for each in sentences_of_tables(text_of(page)) if words_in(each) > LONGEST_IN_A_TABLE]
    assert long == []


@pytest.mark.parametrize("page", PLAIN)
def test_no_word_has_an_uncommon_sense(page: str) -> None:
    assert banned_words(text_of(page)) == []


def test_readme_is_short() -> None:
    assert len(text_of("README.md").splitlines()) <= MOST_LINES_OF_README


# the lint itself


def test_a_sentence_ends_at_its_stop_and_at_the_end_of_its_item() -> None:
    page = (
        "One two three. Four five\nsix!\n\n- seven eight nine\n- ten eleven\n  twelve\n\n# No sentence here\n"
    )
    found = ["One two three.", "Four five six!", "seven eight nine", "ten eleven twelve"]
    assert sentences(page) == found


def test_what_is_quoted_is_one_word_and_a_block_is_none() -> None:
    command, block = "\n    causeway run x behind\n", "```sh\ntold\n```\n"
    page = f"Run `causeway lift FLOW --fence N` and [read on](a/b.md) now.\n{command}\n{block}"
    assert [words_in(each) for each in sentences(page)] == [6]
    assert banned_words(page) == []


def test_a_stop_inside_a_name_or_a_number_ends_nothing() -> None:
    assert sentences("Kafka 3.6 and flows.yaml and docs/a.md stay one sentence.") != []
    assert len(sentences("Kafka 3.6 and flows.yaml and docs/a.md stay one sentence.")) == 1


def test_cells_of_a_table_have_sentences_of_their_own() -> None:
    page = "| a | b |\n|---|---|\n| It was read here. It was not read there | `a | b` is one cell |\n"
    assert sentences_of_tables(page) == [
        "It was read here.",
        "It was not read there",
        "Code is one cell",
    ]
    assert sentences(page) == []


def test_lengths_are_measured() -> None:
    assert mean([10, 20]) == 15
    assert percentile(list(range(1, 11)), 0.9) == 9
    assert percentile([7], 0.9) == 7


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("behind", "The offset behind the last record."),
        ("in front of", "A note in\nfront of settling."),
        ("anew", "The topic was made anew."),
        ("told", "Nobody is told."),
        ("said", "| it is said twice |"),
        ("for good", "# Stopped for good"),
        ("lead back", "`nyc_to_sf` leads it back."),
        ("go home", "The groups go home."),
        ("stand still", "```text\nthe mirror stands still\n```"),
        ("see to", "Such groups are never seen to."),
        ("the way out", "The facts and the **way out**."),
    ],
)
def test_each_banned_word_would_be_found(word: str, sentence: str) -> None:
    assert [each.split(": ")[1] for each in banned_words(f"\n{sentence}\n")] == [word]


def test_each_banned_word_has_an_example_here() -> None:
    examples = test_each_banned_word_would_be_found.pytestmark[0].args[1]  # type: ignore[attr-defined]
    assert [word for word, _ in examples] == list(BANNED)


@pytest.mark.parametrize("quoted", ["`failback --home`", "`begins anew`", "[x](behind.md)"])
def test_what_the_product_is_called_is_allowed(quoted: str) -> None:
    assert banned_words(f"Type {quoted} now.") == []


def test_a_banned_word_is_found_at_its_line() -> None:
    assert banned_words("One.\n\nTwo `x`\nbehind.\n") == ["line 4: behind"]


def test_an_anchor_that_stays_is_one_and_no_sentence() -> None:
    page = 'Before it.\n\n<a id="going-home-it-was"></a>\n\n## Return to `sf`: how\n'
    assert anchors(page) == {"going-home-it-was", "return-to-sf-how"}
    assert sentences(f"{page}\nAfter it all ends.\n") == ["After it all ends."]
    assert banned_words(page) == []
    assert anchors(f"```text\n{page}```\n") == set()
