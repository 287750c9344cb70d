"""What Spark needs is missing: reported before anything starts, with what to set."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from causeway.core.kernel.errors import BadInput
from causeway.spark.java import refuse_without_java

HERE = {"PATH": f"{Path(shutil.which('java') or '/usr/bin/java').parent}:/usr/bin:/bin"}


def test_a_java_in_the_path_or_at_home_will_do() -> None:
    refuse_without_java(HERE)
    refuse_without_java(HERE | {"JAVA_HOME": "", "SPARK_HOME": ""})
    java = Path(shutil.which("java") or "").resolve()
    refuse_without_java(HERE | {"JAVA_HOME": str(java.parents[1])})


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        (HERE | {"JAVA_HOME": "/nope"}, ("JAVA_HOME = /nope: has no program bin/java", "Java 17")),
        (HERE | {"JAVA_HOME": "/" + "x" * 3_000}, ("JAVA_HOME", "Java 17")),
        ({"PATH": "/nope"}, ("PATH = /nope: has no program java", "JAVA_HOME")),
        ({}, ("PATH = : has no program java", "JAVA_HOME")),
        (HERE | {"SPARK_HOME": "/nope"}, ("SPARK_HOME = /nope: has no program bin/spark-submit", "unset")),
    ],
)
def test_what_is_missing_is_named(environ: dict[str, str], words: tuple[str, ...]) -> None:
    with pytest.raises(BadInput) as refusal:
        refuse_without_java(environ)
    assert [word for word in words if word not in str(refusal.value)] == []


def test_without_a_shell_sparks_scripts_do_not_run(tmp_path: Path) -> None:
    (tmp_path / "java").write_text("")
    (tmp_path / "java").chmod(0o755)
    with pytest.raises(BadInput, match="has no program bash"):
        refuse_without_java({"PATH": str(tmp_path)})


@pytest.fixture
def spark_env(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """Spark's own settings of its environment, in which Java is named; none is in PATH."""
    programs, home = tmp_path / "programs", tmp_path / "a java"
    programs.mkdir()
    (programs / "bash").symlink_to(shutil.which("bash") or "")
    (home / "bin").mkdir(parents=True)
    (home / "bin/java").write_text("")
    (home / "bin/java").chmod(0o755)
    conf = tmp_path / "conf"
    conf.mkdir()

    def written(text: str) -> dict[str, str]:
        (conf / "spark-env.sh").write_text(text.replace("@", str(home)))
        return {"PATH": str(programs), "SPARK_CONF_DIR": str(conf)}

    return written


@pytest.mark.parametrize(
    "text",
    ["JAVA_HOME='@'\n", "echo hello\nexport JAVA_HOME='@'\n", 'PATH="$PATH:@/bin"\n', "exit 0\n"],
)
def test_a_java_that_sparks_environment_names_will_do(
    spark_env: Callable[[str], dict[str, str]], text: str
) -> None:
    refuse_without_java(spark_env(text))


def test_what_sparks_environment_names_and_is_not_there_is_refused(
    spark_env: Callable[[str], dict[str, str]],
) -> None:
    environ = spark_env("JAVA_HOME=/nope\n")
    with pytest.raises(
        BadInput, match=r"JAVA_HOME \(of .*/conf/spark-env\.sh\) = /nope: has no program bin/java"
    ):
        refuse_without_java(environ)
    with pytest.raises(BadInput, match=r"PATH = .*: has no program java"):
        refuse_without_java(spark_env("# nothing\n"))
