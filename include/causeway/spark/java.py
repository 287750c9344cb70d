"""What Spark needs of this machine before it is started: a Java, a shell, its own programs.

Its own refusals are stack traces of its launcher, some seconds later, and don't say what to set.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from causeway.core.kernel.errors import BadInput

_NEEDS = "Spark needs Java 17 or 21"
_PASSWORDS = "AIRFLOW_CONN_"
_SETTINGS = "spark-env.sh"
_SETTINGS_SECONDS = 20.0
_ASK = 'set -a; . "$1" >&2; printf "%s\\0%s\\0" "$JAVA_HOME" "$PATH"'
"""As Spark's load-spark-env.sh reads it."""


@dataclass(frozen=True, slots=True)
class _Named:
    """Where Java is looked for, and what an error calls it."""

    home: str
    path: str
    home_word: str = "JAVA_HOME"
    path_word: str = "PATH"


def refuse_without_java(environ: Mapping[str, str]) -> None:
    """As Spark's own scripts look for it: JAVA_HOME first, then PATH, both after its spark-env.sh was read.

    :raises BadInput: names what is missing, and what to set.
    """
    path = environ.get("PATH", "")
    bash = shutil.which("bash", path=path)
    settings = _settings_file(environ)
    if bash is None or not _is_file(settings):
        _refuse_without_java(_Named(environ.get("JAVA_HOME", ""), path))
    elif (named := _named_in(settings, bash, environ)) is not None:
        _refuse_without_java(named)
    if bash is None:
        rule, remedy = "has no program bash, and Spark's scripts need it", "add /bin or /usr/bin to PATH"
        raise BadInput("PATH", value=path, rule=rule, remedy=remedy)
    spark = environ.get("SPARK_HOME", "")
    if spark and not _is_program(Path(spark) / "bin" / "spark-submit"):
        remedy = "unset it to use the Spark that is installed with Causeway, or let it name another's folder"
        raise BadInput("SPARK_HOME", value=spark, rule="has no program bin/spark-submit", remedy=remedy)


def _refuse_without_java(named: _Named) -> None:
    if named.home and not _is_program(Path(named.home) / "bin" / "java"):
        remedy = f"{_NEEDS}: let it name one (its folder has bin/java), or unset it to use PATH's java"
        raise BadInput(named.home_word, value=named.home, rule="has no program bin/java", remedy=remedy)
    if not named.home and shutil.which("java", path=named.path) is None:
        remedy = f"{_NEEDS}: install it, or let JAVA_HOME name its folder"
        rule = "has no program java, and JAVA_HOME isn't set"
        raise BadInput(named.path_word, value=named.path, rule=rule, remedy=remedy)


def _settings_file(environ: Mapping[str, str]) -> Path:
    folder = environ.get("SPARK_CONF_DIR", "")
    return (Path(folder) if folder else _spark_home(environ) / "conf") / _SETTINGS


def _spark_home(environ: Mapping[str, str]) -> Path:
    if home := environ.get("SPARK_HOME", ""):
        return Path(home)
    found = find_spec("pyspark")
    return Path((found and found.origin) or "").parent


def _named_in(settings: Path, bash: str, environ: Mapping[str, str]) -> _Named | None:
    """None: it says nothing in time, or ends the shell; Spark will say what it makes of it."""
    spark = {"SPARK_HOME": str(_spark_home(environ)), "SPARK_CONF_DIR": str(settings.parent)}
    try:
        asked = subprocess.run(
            [bash, "-c", _ASK, "bash", str(settings)],
            env={**without_passwords(environ), **spark},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SETTINGS_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = asked.stdout.split(b"\0")
    if len(said) < 2:
        return None
    home, path = map(os.fsdecode, said[:2])
    words = (
        name if value == environ.get(name, "") else f"{name} (of {settings})"
        for name, value in (("JAVA_HOME", home), ("PATH", path))
    )
    return _Named(home, path, *words)


def without_passwords(environ: Mapping[str, str]) -> dict[str, str]:
    """Lanes bring along what they need of the clusters' connections."""
    return {name: value for name, value in environ.items() if not name.startswith(_PASSWORDS)}


def not_started(environ: Mapping[str, str], code: int) -> BadInput:
    """Its Java ended before Spark was up; mostly it is too old, or there is no memory for it."""
    java = environ.get("JAVA_HOME") or shutil.which("java") or "java"
    return BadInput(
        "Spark",
        value=java,
        rule=f"that Java ended with code {code} before Spark was up; the lines above say why",
        remedy=f"{_NEEDS}: look at `java -version`, JAVA_HOME, SPARK_HOME and the memory that is free",
    )


def _is_program(path: Path) -> bool:
    return _is_file(path) and os.access(path, os.X_OK)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no folder could have
        return False
