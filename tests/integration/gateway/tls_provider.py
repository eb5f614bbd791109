#!/usr/bin/env python3
"""tls_provider.py CERTIFICATE KEY PORT-FILE: a provider of chat completions over TLS on 127.0.0.1."""
import http.server
import json
import os
import ssl
import sys


class Provider(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        text = json.dumps({"id": "c", "choices": [{"index": 0, "message": {"role": "assistant", "content": "by TLS"}}],
                           "usage": {"prompt_tokens": 8, "completion_tokens": 9}})
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


certificate, key, port_file = sys.argv[1:]
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
with open(port_file + ".new", "w") as f:
    f.write(str(server.server_port))
os.rename(port_file + ".new", port_file)
server.serve_forever()
