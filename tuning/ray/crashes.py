"""What a process leaves behind when it crashes."""

import faulthandler
import os
from pathlib import Path


def report_crashes(folder: Path) -> None:
    """Have this process write a report into `folder` if it crashes (SIGSEGV, SIGABRT, ...), by its number.

    Ray tells the driver only that a worker is gone. On another machine the folder is not there: no report.
    """
    if folder.is_dir():
        # Left open: a crash has no time to open anything.
        faulthandler.enable(os.open(folder / str(os.getpid()), os.O_WRONLY | os.O_CREAT))
