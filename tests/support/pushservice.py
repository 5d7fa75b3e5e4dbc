"""A push service and the browsers behind it, in this process: takes what a daemon sends, and reads it as RFC 8188, 8291
and 8292 say, by nothing of the daemon's own code."""

import base64
import hashlib
import hmac
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.support.daemon import Daemon
from tests.support.ports import free_port

CONFIG = """
[a2a.push]
allow = ["loopback"]
[notify]
content = "full"
"""


@contextmanager
def telling_daemon(folder: Path) -> Iterator[Daemon]:
    """A daemon that may tell this push service, with a shell; at the same port over a restart, as cookies want it."""
    listen = f'[api]\nlisten = "127.0.0.1:{free_port()}"\nagent_ports = false\n'
    daemon = Daemon(folder, config=listen + CONFIG).start()
    try:
        daemon.start_agent(profile="generic", name="shell", args=["bash", "--norc"], env={"PS1": "$ "})
        yield daemon
    finally:
        daemon.end()


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def hkdf(salt: bytes, secret: bytes, info: bytes, length: int) -> bytes:
    """RFC 5869, of one block."""
    extracted = hmac.new(salt, secret, hashlib.sha256).digest()
    return hmac.new(extracted, info + b"\x01", hashlib.sha256).digest()[:length]


class BrowserKeys:
    """What a browser makes when it subscribes."""

    def __init__(self, private: ec.EllipticCurvePrivateKey | None = None, auth: bytes | None = None) -> None:
        self.private = private or ec.generate_private_key(ec.SECP256R1())
        self.auth = auth or os.urandom(16)
        self.point = self.private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    @property
    def keys(self) -> dict[str, str]:
        return {"p256dh": encoded(self.point), "auth": encoded(self.auth)}

    def read(self, body: bytes) -> bytes:
        """The message in it (RFC 8291, 3.4; RFC 8188, 2)."""
        salt, size, length = body[:16], int.from_bytes(body[16:20]), body[20]
        sender, record = body[21 : 21 + length], body[21 + length :]
        assert 18 <= len(record) <= size, "one record, as RFC 8291 asks for"
        theirs = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
        shared = self.private.exchange(ec.ECDH(), theirs)
        agreed = hkdf(self.auth, shared, b"WebPush: info\x00" + self.point + sender, 32)
        key = hkdf(salt, agreed, b"Content-Encoding: aes128gcm\x00", 16)
        nonce = hkdf(salt, agreed, b"Content-Encoding: nonce\x00", 12)
        plain = AESGCM(key).decrypt(nonce, record, None).rstrip(b"\x00")
        assert plain[-1:] == b"\x02", "the last record"
        return plain[:-1]


def checked_vapid(header: str, *, service: str, now: float) -> tuple[str, dict[str, Any]]:
    """The key and the claims of an `Authorization` of RFC 8292, whose signature is right."""
    scheme, _, rest = header.partition(" ")
    assert scheme == "vapid"
    given = dict(part.strip().split("=", 1) for part in rest.split(","))
    head, claims, signature = given["t"].split(".")
    assert json.loads(decoded(head)) == {"typ": "JWT", "alg": "ES256"}
    raw = decoded(signature)
    assert len(raw) == 64
    public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decoded(given["k"]))
    signed = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    public.verify(signed, f"{head}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))
    said = json.loads(decoded(claims))
    assert said["aud"] == service
    assert 0 < said["exp"] - now <= 86_400
    assert said["sub"].startswith(("mailto:", "https://"))
    return given["k"], said


class PushService:
    """`taken`: what was accepted, read: the message, its headers, the key that signed it, and when it came
    (`time.monotonic()`). `answers`: statuses of the next requests, else 201."""

    def __init__(self) -> None:
        self.browsers: dict[str, BrowserKeys] = {}
        self.taken: list[dict[str, Any]] = []
        self.refused: list[str] = []
        self.answers: list[int] = []
        self.now: Callable[[], float] = time.time
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = service.take(self.path, dict(self.headers), body)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> "PushService":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def subscribe(self, name: str = "phone") -> dict[str, Any]:
        """A browser's subscription, as `POST /web/push` wants it."""
        browser = self.browsers[f"/push/{name}"] = BrowserKeys()
        return {"endpoint": f"{self.origin}/push/{name}", "expirationTime": None, "keys": browser.keys}

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        status = self.answers.pop(0) if self.answers else 201
        if path not in self.browsers:
            status = 410
        if status >= 300:
            self.refused.append(path)
            return status
        assert len(body) <= 4096
        assert headers["Content-Encoding"] == "aes128gcm"
        assert int(headers["TTL"]) > 0
        key, claims = checked_vapid(headers["Authorization"], service=self.origin, now=self.now())
        said = json.loads(self.browsers[path].read(body))
        told = {"to": path, "said": said, "headers": headers, "key": key, "claims": claims}
        self.taken.append({**told, "at": time.monotonic(), "size": len(body)})
        return status

    def said(self, state: str | None = None, *, to: str = "/push/phone") -> list[dict[str, Any]]:
        """What that browser was told, without what is only finished."""
        said = [one["said"] for one in self.taken if one["to"] == to]
        return [one for one in said if state in (None, one.get("state")) and one.get("kind") != "finished"]
