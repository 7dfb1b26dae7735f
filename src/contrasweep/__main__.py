"""The command line: `contrasweep`, or `python -m contrasweep`."""

import sys

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended, as shells have it."""


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        from contrasweep.tuning.cli import main as run
    except KeyboardInterrupt:
        # Nothing has begun: a traceback of the imports would say nothing.
        sys.exit(INTERRUPTED)
    run()


if __name__ == "__main__":
    main()
