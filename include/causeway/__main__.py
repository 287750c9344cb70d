"""The program `causeway`, also as `python -m causeway`: it hears Ctrl-C before it loads what takes time."""

from __future__ import annotations

from causeway import interruption


def main() -> int:
    """:returns: the exit code. After it nothing is left that a signal could stop."""
    with interruption.listening(), interruption.whole():  # the command line alone says where it may be ended
        from causeway.cli.main import main as run  # noqa: PLC0415 - not before signals are heard

        code = run()
        interruption.deaf()
    return code


if __name__ == "__main__":
    raise SystemExit(main())
