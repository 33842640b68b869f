"""Three things that the fuzzer is told about the API; the checks themselves stay as they are.

- Its destinations stay on this machine: whatever host it invents, webhooks go to the receiver of the test. Only the host
  of an http URL is replaced, so that what was wrong about a URL stays wrong.
- Failed sign-ins are limited by address, and it makes many to see whether they fail. Each connection comes from another
  loopback address, so that it sees the 401 and not the limit.
- Where a body is optional it leaves it out and calls that a wrong request. It is a right one.
"""

import os
from urllib.parse import urlsplit

import schemathesis
from schemathesis import GenerationMode
from schemathesis.core import NotSet
from urllib3.util import connection

RECEIVER = os.environ["XTASK_FUZZ_RECEIVER"]


@schemathesis.hook
def before_call(context, case, kwargs):
    case.body = kept_here(case.body)
    meta = case.meta
    if meta and isinstance(case.body, NotSet) and meta.phase.data.description == "Positive test case":
        meta.generation.mode = GenerationMode.POSITIVE


def kept_here(value):
    if isinstance(value, dict):
        return {name: here(item) if name == "url" else kept_here(item) for name, item in value.items()}
    if isinstance(value, list):
        return [kept_here(item) for item in value]
    return value


def here(url):
    if not isinstance(url, str) or not url.lower().startswith(("http://", "https://")):
        return url
    try:
        parts = urlsplit(url)
        if not parts.hostname or parts.username is not None:
            return url
        return parts._replace(scheme="http", netloc=RECEIVER).geturl()
    except ValueError:
        return url


connect = connection.create_connection
addresses = (f"127.{a}.{b}.{c}" for a in range(1, 255) for b in range(256) for c in range(1, 255))


def connect_from_another_address(*arguments, **options):
    return connect(*arguments, **{**options, "source_address": (next(addresses), 0)})


connection.create_connection = connect_from_another_address
