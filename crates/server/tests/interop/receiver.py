"""A receiver in Python that trusts what the published library `standardwebhooks` verifies, and nothing else.

It prints its port, then serves on it until its standard input ends:

    PUT /secrets/NAME  a JSON list of secrets of one destination
    POST /NAME         a webhook; 204 if it verifies under one of them, else 401
    GET /received      what came in: the body, under which secrets it verified, which tampered copies verified
"""

import base64
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

secrets = {}
received = []


def verifies(secret, body, headers):
    """Whether the library takes it; a body that is no JSON may be signed all the same."""
    try:
        Webhook(secret).verify(body, headers, json_parse=False)
        return True
    except WebhookVerificationError:
        return False


def tampered_copies(body, headers):
    """The same message with one part changed each."""
    yield "body", body + b" ", headers
    yield "id", body, {**headers, "webhook-id": headers["webhook-id"] + "0"}
    later = str(int(headers["webhook-timestamp"]) + 1)
    yield "timestamp", body, {**headers, "webhook-timestamp": later}
    long_ago = str(int(headers["webhook-timestamp"]) - 3600)
    yield "old timestamp", body, {**headers, "webhook-timestamp": long_ago}
    yield "signature", body, {**headers, "webhook-signature": "v1," + base64.b64encode(bytes(32)).decode()}


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        secrets[self.path.removeprefix("/secrets")] = json.loads(self.body())
        self.answer(204)

    def do_GET(self):
        self.answer(200, json.dumps(received).encode())

    def do_POST(self):
        body, headers = self.body(), {name.lower(): value for name, value in self.headers.items()}
        known = secrets.get(self.path, [])
        verified = [verifies(secret, body, headers) for secret in known]
        copies = tampered_copies(body, headers) if any(verified) else []
        received.append(
            {
                "path": self.path,
                "id": headers.get("webhook-id"),
                "content_type": headers.get("content-type"),
                "body": base64.b64encode(body).decode(),
                "verified": verified,
                "fooled_by": [
                    part for part, body, headers in copies if any(verifies(secret, body, headers) for secret in known)
                ],
            }
        )
        self.answer(204 if any(verified) else 401)

    def body(self):
        return self.rfile.read(int(self.headers.get("content-length", "0")))

    def answer(self, status, body=b""):
        self.send_response(status)
        if status != 204:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
