"""Servers on this machine, in place of those that data is downloaded from."""

import contextlib
import select
import socket
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def serving(answers):
    """Serves files; the server's URL and a list of the paths that were asked for.

    Args:
      answers: {path: content}, or of a path a function of the handler that answers.
    """
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            path = self.path.lstrip("/")
            asked.append(path)
            answer = answers.get(path)
            if callable(answer):
                answer(self)
            elif answer is None:
                self.send_error(404)
            else:
                send(self, answer)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def send(handler, content, seconds=0, seconds_before=None, parts=4, **headers):
    """Answers with a content.

    Args:
      handler: of the request.
      content: bytes.
      seconds: between its parts.
      seconds_before: before all of it; None for as many.
      parts: how many there are, if it comes in parts.
      headers: {name: value}, "_" for "-".
    """
    time.sleep(seconds if seconds_before is None else seconds_before)
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    size = -(-len(content) // parts) if seconds else len(content)
    with contextlib.suppress(ConnectionError):  # it is no longer listened to
        for start in range(0, len(content), size):
            handler.wfile.write(content[start : start + size])
            time.sleep(seconds)


@contextmanager
def silence():
    """A server that takes connections and never answers: its URL, and a function that
    says whether there was one."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        yield url, lambda: bool(select.select([listener], [], [], 0)[0])


def closed():
    """The URL of a port where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"
