"""An S3 server (moto) in its own process, on loopback unless a host is given.

s3_server.py [PORT [BUCKET [HOST]]]: creates the bucket, prints the port, and serves until it is stopped.
Without a port, or with port 0, it serves until its input ends.
"""

import io
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

REGION = "us-east-1"
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Server:
    """A running server that counts its requests."""

    port: int
    host: str = LOOPBACK

    @property
    def place(self) -> str:
        """The host and the port."""
        return f"{self.host}:{self.port}"

    def uri(self, path: str) -> str:
        """Return the URI of `bucket/folder`, as a user gives it."""
        query = {"scheme": "http", "endpoint_override": self.place, "region": REGION}
        return f"s3://{path}?{urlencode(query)}"

    def make_bucket(self, name: str) -> None:
        self.ask(f"/{name}", "PUT")

    def check_rights(self, yes: bool = True) -> None:
        """Check rights from now on, or allow everything to everybody."""
        self.ask("/moto-api/reset-auth", "POST", b"0" if yes else b"inf")

    def counts(self) -> dict[str, int]:
        """Return the number of requests of each kind (`PUT`, `LIST`, ...) since the last call."""
        found: dict[str, int] = json.loads(self.ask("/requests", "GET"))
        return found

    def make_user(self, bucket: str) -> tuple[str, str]:
        """Return the access key and the secret key of a user with all rights in one bucket."""
        import boto3

        iam = boto3.client(
            "iam",
            endpoint_url=f"http://{self.place}",
            aws_access_key_id="setup",
            aws_secret_access_key="setup",
            region_name=REGION,
        )
        name = f"user-of-{bucket}"
        iam.create_user(UserName=name)
        resources = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]
        allowed = [{"Effect": "Allow", "Action": "s3:*", "Resource": resources}]
        policy = json.dumps({"Version": "2012-10-17", "Statement": allowed})
        iam.put_user_policy(UserName=name, PolicyName="all", PolicyDocument=policy)
        key = iam.create_access_key(UserName=name)["AccessKey"]
        return key["AccessKeyId"], key["SecretAccessKey"]

    def ask(self, path: str, method: str, body: bytes | None = None) -> bytes:
        plain = {"Content-Type": "text/plain"}
        request = Request(f"http://{self.place}{path}", data=body, headers=plain, method=method)
        with urlopen(request, timeout=30) as answer:
            content: bytes = answer.read()
        return content


@contextmanager
def s3_server(host: str = LOOPBACK) -> Iterator[Server]:
    """Serve inside the block."""
    command = [sys.executable, __file__, "0", "", host]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Server(int(process.stdout.readline()), host)
        finally:
            process.stdin.close()


class _Watched:
    """Counts requests; if rights are checked, it refuses unsigned ones, as S3 does."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._strict = False
        self._counts: Counter[str] = Counter()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/requests":
            told, self._counts = json.dumps(self._counts), Counter()
            start_response("200 OK", [("Content-Type", "application/json")])
            return [told.encode()]
        if path == "/moto-api/reset-auth":
            body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            environ["wsgi.input"] = io.BytesIO(body)
            self._strict = body == b"0"
        elif self._strict and "HTTP_AUTHORIZATION" not in environ:
            start_response("403 Forbidden", [("Content-Length", "0")])
            return [b""]
        method = environ["REQUEST_METHOD"]
        self._counts["LIST" if method == "GET" and "list-type" in environ["QUERY_STRING"] else method] += 1
        answer: Iterable[bytes] = self._app(environ, start_response)
        return answer


def _serve() -> None:
    import logging
    import threading

    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    app = _Watched(DomainDispatcherApplication(create_backend_app))
    port, bucket, host = [*sys.argv[1:], *("0", "", LOOPBACK)[len(sys.argv) - 1 :]]
    server = make_server(host, int(port), app, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    if bucket:
        Server(server.server_port, host).make_bucket(bucket)
    print(server.server_port, flush=True)  # noqa: T201
    if port == "0":
        sys.stdin.read()
    else:
        threading.Event().wait()


if __name__ == "__main__":
    _serve()
