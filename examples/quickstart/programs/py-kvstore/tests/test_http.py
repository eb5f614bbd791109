"""Talks to a running server over the loopback interface."""
import http.client
import json
import threading
import unittest

import kvstore


class Http(unittest.TestCase):
    def setUp(self):
        self.server = kvstore.serve(0)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}).start()

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection(*self.server.server_address, timeout=10)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        found = answer.status, answer.read(), answer.getheader("ETag")
        connection.close()
        return found

    def test_put_then_get(self):
        self.assertEqual(self.ask("PUT", "/keys/a", b"one")[0], 201)
        self.assertEqual(self.ask("GET", "/keys/a")[:2], (200, b"one"))

    def test_replace(self):
        self.ask("PUT", "/keys/a", b"one")
        self.assertEqual(self.ask("PUT", "/keys/a", b"two")[0], 204)

    def test_unknown(self):
        self.assertEqual(self.ask("GET", "/keys/none")[0], 404)
        self.assertEqual(self.ask("DELETE", "/keys/none")[0], 404)

    def test_names_are_listed(self):
        self.ask("PUT", "/keys/b%2Fc", b"x")
        self.ask("PUT", "/keys/a", b"x")
        self.assertEqual(json.loads(self.ask("GET", "/keys")[1]), ["a", "b/c"])

    def test_if_match_replaces(self):
        tag = self.ask("PUT", "/keys/a", b"one")[2]
        self.assertEqual(self.ask("PUT", "/keys/a", b"two", {"If-Match": tag})[0], 204)

    def test_if_match_refuses_a_stale_tag(self):
        tag = self.ask("PUT", "/keys/a", b"one")[2]
        self.ask("PUT", "/keys/a", b"two")
        self.assertEqual(self.ask("PUT", "/keys/a", b"three", {"If-Match": tag})[0], 412)

    def test_if_match_needs_a_stored_value(self):
        self.assertEqual(self.ask("PUT", "/keys/new", b"x", {"If-Match": '"0000"'})[0], 412)
        self.assertEqual(self.ask("GET", "/keys/new")[0], 404)
