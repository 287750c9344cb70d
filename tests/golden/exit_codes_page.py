"""docs/reference/exit-codes.md: from EXIT_CODES, VERB_TEXTS and the classes of core/kernel/errors.py."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from causeway.cli.exit_codes import EXIT_CODES
from causeway.cli.verb_texts import VERB_TEXTS
from causeway.core.kernel.errors import CausewayError
from causeway.lab import errors as lab_errors
from tests.golden.markdown import anchor, head, joined, table

NOT_RETRIED = (2, 4, 6)
"""By Airflow; test_pages.py compares it with airflow/failures.py."""


def page() -> str:
    codes = [(str(code), each.means, each.do) for code, each in EXIT_CODES.items()]
    own = [
        (f"[`{verb}`](../command-line.md#{anchor(f'causeway {verb}')})", str(code), means)
        for verb, text in sorted(VERB_TEXTS.items())
        for code, means in sorted(text.exit_codes.items())
    ]
    errors = [(f"`{kind.__name__}`", str(kind.exit_code), about(kind)) for kind in named_errors()]
    return joined(
        head(
            "Exit codes",
            "include/causeway: cli/exit_codes.py, cli/verb_texts.py, core/kernel/errors.py",
        ),
        "Every command of `causeway` ends with one of these numbers. Scripts can rely on them.",
        table(("code", "meaning", "what you do"), codes),
        "An error is one line on standard error: the thing, its value, the rule, and what to do. "
        "With `--json` it is one object on standard output, and its field `exit_code` has the number.",
        "## What a code means for a verb",
        "Where a code has a meaning of its own for a verb:",
        table(("verb", "code", "meaning"), own),
        "If `causeway run` has copied all and the group sync at its end fails, the code is the sync's. "
        "If `drift` or `sync` can't see something, the code is the largest one of these errors.",
        "If several checks of `causeway doctor` FAILED, 6 comes before 3, 3 before 2, and 2 before 5.",
        "## Errors by name",
        "The field `error` of an error in JSON has one of these names:",
        table(("error", "code", "meaning"), errors),
        "## In Airflow",
        "A task that would end with 3 fails, and Airflow tries it again, as often as its `retries` says. "
        "It does the same for a process that was killed. "
        f"A task that would end with {', '.join(map(str, NOT_RETRIED[:-1]))} or {NOT_RETRIED[-1]} fails "
        "at once: waiting would not help.",
        "A copy that leaves something out (5) succeeds. The task `parked` of the same run then turns red.",
    )


def named_errors() -> Iterator[type[CausewayError]]:
    """The most special ones, and those that are raised as they are."""
    kinds = sorted(_below(CausewayError), key=lambda kind: (kind.exit_code, kind.__name__))
    ours = (CausewayError.__module__, lab_errors.__name__)
    return (kind for kind in kinds if kind.__module__ in ours)


def _below(kind: type[CausewayError]) -> set[type[CausewayError]]:
    found = set(kind.__subclasses__())
    return found.union(*(_below(each) for each in found))


def about(kind: type[CausewayError]) -> str:
    return " ".join((inspect.cleandoc(kind.__doc__) if kind.__doc__ else "").split())
