"""A key-value store over HTTP.  python3 kvstore.py PORT"""
import hashlib
import http.server
import json
import sys
import threading
import urllib.parse

BODY_MAX = 1 << 20


class Store:
    """Values by name, each with an ETag; safe to use from several threads."""

    def __init__(self):
        self._lock = threading.Lock()
        self._values = {}

    @staticmethod
    def etag(value):
        return '"' + hashlib.sha256(value).hexdigest()[:16] + '"'

    def get(self, name):
        with self._lock:
            return self._values.get(name)

    def names(self):
        with self._lock:
            return sorted(self._values)

    def put(self, name, value, expected=None):
        """True: new.  False: replaced.  None: the stored value is not the expected one."""
        with self._lock:
            old = self._values.get(name)
            if expected and old is not None and self.etag(old) != expected:
                return None
            self._values[name] = value
            return old is None

    def delete(self, name):
        with self._lock:
            return self._values.pop(name, None) is not None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def name(self):
        path = urllib.parse.urlsplit(self.path).path
        return urllib.parse.unquote(path.removeprefix("/keys/")) if path.startswith("/keys/") else None

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/keys":
            return self.answer(200, json.dumps(self.server.store.names()).encode(),
                               Content_Type="application/json")
        name = self.name()
        value = None if name is None else self.server.store.get(name)
        if value is None:
            return self.answer(404)
        return self.answer(200, value, ETag=Store.etag(value))

    def do_PUT(self):
        name, length = self.name(), int(self.headers.get("Content-Length") or 0)
        if not name:
            return self.answer(404)
        if length > BODY_MAX:
            return self.answer(413, Connection="close")
        value = self.rfile.read(length)
        made = self.server.store.put(name, value, self.headers.get("If-Match"))
        if made is None:
            return self.answer(412)
        return self.answer(201 if made else 204, ETag=Store.etag(value))

    def do_DELETE(self):
        name = self.name()
        return self.answer(204 if name and self.server.store.delete(name) else 404)

    def log_message(self, *_):
        pass


def serve(port):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    server.store = Store()
    return server


if __name__ == "__main__":
    serve(int(sys.argv[1])).serve_forever()
