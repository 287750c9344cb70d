"""The command line: `causeway <verb>`. Parses, runs one verb, prints its outcome, ends with its exit code.

What machines read goes to standard output; progress, notes and errors go to standard error. Ctrl-C and
SIGTERM end a verb in the same way, with 130, after it has cleaned up.
"""

from __future__ import annotations

import os
import sys
import traceback
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from causeway import interruption
from causeway.cli import completion, screen
from causeway.cli.extras import extras_named
from causeway.cli.interrupted import last_line
from causeway.cli.parser import parser
from causeway.cli.request import Request, Verb
from causeway.core.kernel.errors import BadInput, CausewayError
from causeway.render.outcome import Outcome

DEFECT = 6


def main(arguments: Sequence[str] | None = None) -> int:
    """:returns: the exit code. The only place where an error becomes a line and a number."""
    completion.answer_the_shell(parser)
    screen.hold_closed_streams()
    with interruption.listening(), interruption.whole():
        return _heard(list(sys.argv[1:] if arguments is None else arguments))


def _heard(given: list[str]) -> int:
    """Only the verb can be ended: what is printed of it afterwards could not be printed again."""
    as_json, options = "--json" in given, None
    try:
        with interruption.endable():
            _refuse_lone_dashes(given)
            options = parser().parse_args(given)
            with extras_named():
                outcome = _verb(options)(_request_of(options))
        _print(outcome, as_json=as_json)
        if interruption.was_not_heard():
            screen.note("causeway: interrupted when all was done: what is printed holds")
            return interruption.EXIT_CODE
    except CausewayError as error:
        if interruption.was_asked():
            screen.note(f"causeway: interrupted; meanwhile: {error}")
            return interruption.EXIT_CODE
        _complain(error, as_json=as_json)
        return error.exit_code
    except KeyboardInterrupt as stop:
        screen.note(last_line(stop, options))
        return interruption.EXIT_CODE
    except Exception:  # noqa: BLE001 - the last boundary: Python's own exit code, 1, would mean "difference found"
        screen.note(traceback.format_exc())
        screen.note(
            "causeway: error: a defect of Causeway, not of what you wrote; please report the lines above"
        )
        return DEFECT
    return outcome.exit_code


def _refuse_lone_dashes(given: Sequence[str]) -> None:
    """argparse takes only the first one for what it is, and hands on lists where there should be words.

    :raises BadInput: one that means nothing.
    """
    if given.count("--") > 1 or any(word.startswith("--") and word.endswith("=--") for word in given):
        remedy = "write it once, before what begins with a dash"
        raise BadInput("--", rule="means that no option follows, and is no value", remedy=remedy)


def _verb(options: Namespace) -> Verb:
    verb: Verb = options.verb
    return verb


def _request_of(options: Namespace) -> Request:
    say = _note_verbosely if options.verbose else _say_nothing
    return Request(
        options=options, environ=os.environ, directory=_current_folder(), progress=screen.note, say=say
    )


def _current_folder() -> Path:
    """:raises BadInput: somebody has deleted it."""
    try:
        return Path.cwd()
    except OSError as reason:
        raise BadInput(
            "the current folder",
            rule=f"can't be used: {reason.strerror}",
            remedy="go to the project's folder (cd), and run it again",
        ) from None


def _note_verbosely(line: str) -> None:
    screen.note(f"causeway: {line}")


def _say_nothing(_line: str) -> None:
    """Without --verbose, where things were found is nobody's interest."""


def _print(outcome: Outcome, *, as_json: bool) -> None:
    """:raises BadInput: standard output takes no more."""
    why = screen.answer_in_json(outcome.payload) if as_json else screen.answer(outcome.text)
    if why:
        raise screen.unwritten(why, f"the command itself is over, with exit code {outcome.exit_code}")


def _complain(error: CausewayError, *, as_json: bool) -> None:
    payload = {**error.as_dict(), "message": str(error), "exit_code": error.exit_code}
    if not as_json or isinstance(error, screen.Unwritten) or screen.answer_in_json(payload):
        screen.note(f"causeway: error: {error}")


if __name__ == "__main__":
    raise SystemExit(main())
