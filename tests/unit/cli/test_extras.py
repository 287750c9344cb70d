"""An install without an extra: the verb that needs it says so in one line, before it does anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from causeway.cli.extras import extras_named
from causeway.core.kernel.errors import BadInput
from tests.support.flows_yaml import ONE_FLOW

NOWHERE = '{"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:1"}}'
WITHOUT = """
import sys
sys.modules[sys.argv[1]] = None
from causeway.cli.main import main
raise SystemExit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize(
    ("library", "extra", "command"),
    [
        ("pyspark", "spark", ("run", "sf_to_nyc", "--until-caught-up")),
        ("cryptography", "lab", ("lab", "status")),
    ],
)
def test_a_verb_names_the_extra_that_it_lacks(
    library: str, extra: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "flows.yaml").write_text(ONE_FLOW)
    connections = {"AIRFLOW_CONN_KAFKA_SF": NOWHERE, "AIRFLOW_CONN_KAFKA_NYC": NOWHERE}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, library, *command],
        cwd=tmp_path,
        env=os.environ | connections | {"CAUSEWAY_FLOWS": "flows.yaml", "CAUSEWAY_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = f"causeway: error: {library}: isn't installed; install it: pip install 'causeway[{extra}]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (BadInput.exit_code, "", said)


def test_a_module_that_no_extra_brings_is_a_defect() -> None:
    with pytest.raises(ModuleNotFoundError, match="nothing"), extras_named():
        raise ModuleNotFoundError("nothing", name="nothing")
