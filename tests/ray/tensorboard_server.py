"""A real TensorBoard server on a free port of this machine, as a user starts it."""

import json
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DEADLINE = 120.0
POLL = 0.2

Ask = Callable[[str, dict[str, Any]], Any]


@contextmanager
def tensorboard(folder: Path) -> Iterator[Ask]:
    """Serve `folder` for a `with` block; yield a function that posts JSON to a route."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(folder), "--host", "127.0.0.1"]
    # With port 0 the server takes a free port and prints it.
    server = subprocess.Popen([*command, "--port", "0"], stderr=subprocess.PIPE, text=True)
    end = threading.Timer(DEADLINE, server.kill)
    end.start()
    try:
        assert server.stderr is not None
        said = iter(server.stderr.readline, "")
        url = next((found[0] for line in said if (found := re.search(r"http://127\S*", line))), None)
        assert url is not None, "TensorBoard did not start"

        def ask(route: str, content: dict[str, Any]) -> Any:
            body = json.dumps(content).encode()
            request = urllib.request.Request(url + route, body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
                return json.load(answer)

        yield ask
    finally:
        end.cancel()
        server.kill()
        server.wait()
        if server.stderr is not None:
            server.stderr.close()


def asked_until(ask: Callable[[], Any], enough: Callable[[Any], bool]) -> Any:
    """Ask until `enough` accepts the answer: TensorBoard reads its files in the background."""
    deadline = time.monotonic() + DEADLINE
    pause = threading.Event()
    answer = ask()
    while not enough(answer) and time.monotonic() < deadline:
        pause.wait(POLL)
        answer = ask()
    return answer
