"""A server that notes the requests of reporters."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class NotingHandler(BaseHTTPRequestHandler):
    server: "NotingServer"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append((self.command, self.path, body))
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 200)
        self.end_headers()

    do_PUT = do_POST = do_DELETE = answer

    def log_message(self, format, *args):
        """Say nothing."""


class NotingServer(ThreadingHTTPServer):
    """Notes requests, and answers with the statuses that it is given, then 200."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), NotingHandler)
        self.requests = []
        self.statuses = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def noting_server():
    """Run a server in a thread of its own."""
    listening = NotingServer()
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    try:
        yield listening
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join(30)
