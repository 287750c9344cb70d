"""Generated pages say what the code says; those written by hand agree with its names and numbers."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from causeway.brokers.client_settings import UNDERSTOOD_KEYS
from causeway.cli.commands import drill, failback, failover, import_mm2, offsets, upkeep
from causeway.cli.exit_codes import EXIT_CODES
from causeway.cli.main import DEFECT
from causeway.cli.parser import parser
from causeway.cli.verb_texts import VERB_TEXTS
from causeway.config.connection.endpoint_rules import MEANINGS
from causeway.config.flows_file.document import parse_document
from causeway.config.flows_file.load import deployment_from
from causeway.config.flows_file.model import ClusterModel, FileModel, FlowModel, RuleModel
from causeway.config.mm2_import.keys import is_of_connection, ruling_of_flow_key
from causeway.core.doctor import finding
from causeway.core.failback.divergence import export_topic
from causeway.core.failover.drill_run import clones_of
from causeway.core.groups import stamp
from causeway.core.journal import journal_format
from causeway.core.model.flow import group_of, map_topic_of
from causeway.core.model.naming import FLOWS_TOPIC, HEARTBEATS_TOPIC, SCRATCH_PREFIX
from causeway.core.offsets import mm2_offset_syncs, packed_ranges
from causeway.core.records import mm2_formats
from causeway.core.state import flow_log, position
from causeway.core.topics import heartbeats
from causeway.core.verify import report as verify_report
from causeway.interruption import EXIT_CODE as INTERRUPTED
from causeway.render import outcome
from tests.golden import command_line_page, configuration_page, exit_codes_page
from tests.golden.pages import COMMAND, PAGES, ROOT, is_stale, main

INTERNAL_TOPICS = ROOT / "docs" / "reference" / "internal-topics.md"
CHECKED = [*PAGES, "docs/reference/internal-topics.md"]
MOST_WORDS, MOST_WORDS_OF_HELP = 25, 15
DIALECT = re.compile(
    r"\b(behind|in front of|anew|told|for good|leads? back|goe?s? home|stands? still|the way out|whoever)\b",
    re.IGNORECASE,
)


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_says_what_the_code_says(name: str) -> None:
    assert not is_stale(name), f"{name} is stale: `{COMMAND}` writes it again"


def test_stale_pages_are_found_and_written(tmp_path: Path) -> None:
    assert all(is_stale(name, tmp_path) for name in PAGES)
    main(tmp_path)
    assert not any(is_stale(name, tmp_path) for name in PAGES)
    (tmp_path / "docs" / "configuration.md").write_text("by hand\n")
    assert [name for name in PAGES if is_stale(name, tmp_path)] == ["docs/configuration.md"]


# configuration


def test_the_example_is_a_file_that_causeway_reads() -> None:
    found = deployment_from(parse_document(configuration_page.EXAMPLE.encode(), "flows.yaml"))
    assert list(found.flows) == ["sf_to_nyc", "archive"]


def test_the_flow_of_defaults_is_a_flow_that_says_nothing() -> None:
    text = configuration_page.defaults()
    said = deployment_from(parse_document(text.encode(), "flows.yaml"))
    lines = [line for line in text.splitlines() if not re.match(r" {4}(?!source:|target:)", line)]
    silent = deployment_from(parse_document("\n".join(lines).encode(), "flows.yaml"))
    assert len(lines) == 7
    assert said == silent


def test_each_key_says_what_it_means_and_is_in_one_group() -> None:
    for model in (FileModel, ClusterModel, FlowModel, RuleModel):
        silent = [key for key, field in configuration_page.by_key(model).items() if not field.description]
        assert silent == []
    grouped = Counter(key for keys in configuration_page.GROUPS.values() for key in keys)
    assert grouped == Counter(list(configuration_page.by_key(FlowModel)))
    assert MEANINGS.keys() == UNDERSTOOD_KEYS


def test_mirror_makers_words_are_those_that_an_import_knows() -> None:
    words = {
        word
        for model in (ClusterModel, FlowModel)
        for key in configuration_page.by_key(model)
        for word in re.findall(
            r"`([a-z.-]+)`", configuration_page.mirror_makers_word(key).split(", default")[0]
        )
    }
    assert {"topics", "tasks.max", "consumer.auto.offset.reset", "replication.policy.class"} <= words
    assert [word for word in words if ruling_of_flow_key(word) is None and not is_of_connection(word)] == []


def test_each_variable_that_people_set_is_on_the_page() -> None:
    for_processes = {"CAUSEWAY_PARENT_PID", "CAUSEWAY_AIRFLOW_PROCESS"}
    code = [path.read_text() for folder in ("include", "dags") for path in (ROOT / folder).rglob("*.py")]
    read = {name for text in code for name in re.findall(r'"(CAUSEWAY_[A-Z_]+)"', text)} - for_processes
    assert read == {name for name, _ in configuration_page._VARIABLES if name.startswith("CAUSEWAY_")}


# command line and exit codes


def test_each_verb_is_in_one_group_and_has_its_text() -> None:
    verbs_of_parser = command_line_page.all_verbs()
    grouped = Counter(verb for names in command_line_page.GROUPS.values() for verb in names)
    assert grouped == Counter(list(verbs_of_parser))
    assert VERB_TEXTS.keys() == {*verbs_of_parser, "lab"}


@pytest.mark.parametrize("verb", command_line_page.all_verbs())
def test_the_example_of_a_verb_is_one_that_it_takes(verb: str) -> None:
    words = shlex.split(VERB_TEXTS[verb].example)
    assert words[: 1 + len(verb.split())] == ["causeway", *verb.split()]
    parser().parse_args(words[1:])


def test_usage_names_each_option_of_a_verb() -> None:
    for verb in command_line_page.all_verbs().values():
        usage = " ".join(command_line_page.usage(verb.parser).split())
        for action in command_line_page._own_actions(verb.parser):
            assert (action.option_strings[-1] if action.option_strings else str(action.metavar)) in usage
        assert " [--help]" not in usage


def test_the_table_has_the_exit_codes_that_the_code_gives() -> None:
    given = {kind.exit_code for kind in exit_codes_page.named_errors()}
    given |= {
        0,
        DEFECT,
        INTERRUPTED,
        outcome.PARKED,
        import_mm2.PARKED,
        failover.LEFT_ALONE,
        failback.FENCED,
    }
    given |= {verify_report.PARKED_EXIT_CODE, finding.PARKED_EXIT_CODE, drill.NOT_AS_PLANNED}
    given |= {offsets.UNTRANSLATED, upkeep.DIFFERENT}
    assert given == EXIT_CODES.keys()
    assert given > {code for text in VERB_TEXTS.values() for code in text.exit_codes}
    assert all(exit_codes_page.about(kind) for kind in exit_codes_page.named_errors())


def test_the_page_says_what_airflow_does_not_try_again() -> None:
    text = (ROOT / "include/causeway/airflow/failures.py").read_text()
    found = re.search(r"_NOT_WORTH_A_RETRY = frozenset\(\{(.*)\}\)", text)
    assert found is not None
    assert tuple(map(int, found[1].split(","))) == exit_codes_page.NOT_RETRIED


# topics and groups


def test_the_page_of_internal_topics_has_their_names_and_versions() -> None:
    rows = _rows_of(INTERNAL_TOPICS.read_text())
    fences = ", ".join(map(str, flow_log._VERSIONS["fence"]))
    exports = export_topic("<topic>", 0).replace("19700101T000000Z", "<time>")
    expected = {
        FLOWS_TOPIC: f"1; `fence` {fences}; `starts` {flow_log._VERSIONS['starts'][0]}",
        map_topic_of("<source>"): f"1, {packed_ranges.VERSION}",
        journal_format.FAILOVERS_TOPIC: str(journal_format.VERSION),
        "causeway-quarantine.<flow>.internal": "none",
        mm2_offset_syncs.inherited_topic_of("<flow>"): str(mm2_offset_syncs._VERSION),
        "<source>.checkpoints.internal": str(mm2_formats._VERSION),
        "mm2-offset-syncs.<source>.internal": "none",
        HEARTBEATS_TOPIC: str(heartbeats._VERSION),
        exports: "none",
        f"{SCRATCH_PREFIX}<random>.internal": "none",
        group_of("<flow>"): str(position._VERSION),
        f"{clones_of('<flow>')}<run>/<group>": "none",
        "your own groups": str(stamp._VERSION),
    }
    assert {name: rows.get(name) for name in expected} == expected


def _rows_of(text: str) -> dict[str, str]:
    """The first and the last cell of each row of the overviews."""
    cells = [
        [cell.strip() for cell in line.strip("| ").split(" | ")] for line in text.splitlines() if "|" in line
    ]
    return {row[0].strip("`"): row[-1] for row in cells if len(row) > 3}


# links and English


@pytest.mark.parametrize("name", CHECKED)
def test_sentences_of_reference_pages_are_short_and_plain(name: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / name).read_text(), flags=re.DOTALL)
    whole_lines = re.sub(r"\n(?= *[\w`\"<(])", " ", text)
    sentences = _sentences(re.sub(r"\]\([^)]*\)", "]", whole_lines))
    assert [
        each for each in sentences if len(each.split()) > MOST_WORDS and each.count("`") < MOST_WORDS
    ] == []
    assert [each for each in sentences if DIALECT.search(each)] == []


def test_sentences_of_help_are_short_and_plain() -> None:
    said = [each.summary for each in command_line_page.all_verbs().values()]
    said += [each.means for each in EXIT_CODES.values()]
    for verb in command_line_page.all_verbs().values():
        said += [command_line_page.help_of(action) for action in verb.parser._actions]
    for text in VERB_TEXTS.values():
        said += [text.purpose, text.danger, text.notes, *text.exit_codes.values()]
    sentences = [each for text in said for each in _sentences(text)]
    assert len(sentences) > 300
    assert [each for each in sentences if len(each.split()) > MOST_WORDS_OF_HELP] == []
    assert [each for each in sentences if DIALECT.search(each)] == []


def _sentences(text: str) -> list[str]:
    """A list's entry, a table's cell and what a semicolon or a colon parts count as one each."""
    return [each.strip() for each in re.split(r"[.;:](?:\s|\*|$)|\n|\|", text) if each.strip()]
