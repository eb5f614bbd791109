"""page.py PORT: an HTTP server whose page says how often it was asked for."""
import http.server
import sys


class Page(http.server.BaseHTTPRequestHandler):
    visits = 0

    def do_GET(self):
        text = f"visit {Page.visits}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


http.server.HTTPServer(("", int(sys.argv[1])), Page).serve_forever()
