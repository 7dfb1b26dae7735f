"""The running command as the user typed it."""

import os
import shlex
import sys

TYPED = "CONTRASWEEP_COMMAND"
"""Environment variable with a command that was typed on another machine; the results keep it."""


def command_line() -> str:
    """Return the running command as a user would type it."""
    return os.environ.get(TYPED) or shlex.join(["contrasweep", *sys.argv[1:]])
