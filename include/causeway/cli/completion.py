"""The Tab key: verbs, options and names of flows, for the shell that asks.

`eval "$(register-python-argcomplete causeway)"` switches it on. The shell then starts `causeway` with
`_ARGCOMPLETE` in its environment, and reads what could come next. Nothing here connects to a cluster.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

_ASKED = "_ARGCOMPLETE"


def is_asked() -> bool:
    return _ASKED in os.environ


def answer_the_shell(parser: Callable[[], ArgumentParser]) -> None:
    """Ends the process if a shell asks; otherwise it imports and builds nothing."""
    if not is_asked():
        return
    import argcomplete

    argcomplete.autocomplete(parser())


def flow_names(parsed_args: Namespace, **_of_the_shell: object) -> list[str]:
    """Of the flows.yaml that the verb would read. None where there is no file, or a mistake in it."""
    from causeway.cli.locate import find_flows_file
    from causeway.config.flows_file.load import load_flows
    from causeway.core.kernel.errors import CausewayError

    try:
        path = find_flows_file(getattr(parsed_args, "file", None), os.environ, Path.cwd())
        return list(load_flows(path).flows)
    except (CausewayError, OSError):
        return []
