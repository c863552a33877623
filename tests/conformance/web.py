"""The web service of a client's page: it answers POST /orders with an id, or with 503."""

import time
import urllib.error
import urllib.request

import cluster
import interop
import pages

IDS = 3
TROUBLE = "try again later"


def program(page, word, server, port):
    """The program on the page that contains the word, for a server, and a port to listen on."""
    text = next(block for block in pages.blocks(page) if word in block)
    return text.replace("127.0.0.1:7609", f"127.0.0.1:{server.port}").replace("8080", str(port))


def check(command, port, server, **options):
    """Runs a service that listens on the port. It must answer with new ids, and with 503 after the end of its
    firn-server."""
    service = interop.programs.start(command, **options)
    try:
        check_answers(port, server, service)
    finally:
        interop.programs.end(service)


def check_answers(port, server, service):
    """Checks the answers of a running service."""
    ids = [created(port, service) for _ in range(IDS)]
    if len(set(ids)) != IDS or not all(one.isdigit() for one in ids):
        raise AssertionError(f"these are not {IDS} different ids: {ids}")
    interop.programs.end(server.process)
    if (answer := post(port)) != (503, TROUBLE):
        raise AssertionError(f"without a firn-server the service answered {answer}")


def created(port, service):
    """The id in the first answer that is not 503: the examples have short deadlines for a busy machine."""
    deadline = time.monotonic() + cluster.PATIENCE_S
    while time.monotonic() < deadline and service.poll() is None:
        status, text = post(port)
        if status == 201:
            return text
        if status != 503:
            raise AssertionError(f"the service answered {status}: {text}")
        time.sleep(0.1)
    raise AssertionError("the service gave no id")


def post(port):
    """The status and the text of an answer; 503 while the service does not listen yet."""
    try:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/orders", method="POST", data=b"")
        with urllib.request.urlopen(request, timeout=cluster.PATIENCE_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as failure:
        with failure:
            return failure.code, failure.read().decode().rstrip()
    except OSError as fault:
        return 503, str(fault)
