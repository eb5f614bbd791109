#include "worker/network/proxy_request.h"

#include <doctest/doctest.h>

namespace proctor {
namespace {

std::string get(const std::string& url, const std::string& headers = "") {
  return "GET " + url + " HTTP/1.1\r\n" + headers + "\r\n";
}

}  // namespace

TEST_SUITE("network") {
  TEST_CASE("a tunnel is asked for by host and port") {
    for (const char* host : {"", "Host: a.org:443\r\n", "Host: A.ORG\r\n", "host:a.org.\r\n"}) {
      CAPTURE(host);
      const auto r =
          parse_proxy_request("CONNECT a.org:443 HTTP/1.1\r\n" + std::string(host) + "\r\n");
      REQUIRE(r.ok());
      CHECK(r->tunnel);
      CHECK(to_string(r->target) == "a.org:443");
      CHECK(r->head.empty());
    }
    CHECK(parse_proxy_request("CONNECT [::1]:80 HTTP/1.0\r\n\r\n").ok());
  }

  TEST_CASE("a plain request goes on with its path and our own Host and nothing about proxies") {
    const auto r = parse_proxy_request(
        get("HTTP://A.org:8080/x/y?q=1",
            "Host: a.org:8080\r\nUser-Agent:  curl \r\nProxy-Authorization: Basic c2VjcmV0\r\n"
            "Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nProxy-Connection: keep-alive\r\n"
            "Upgrade: websocket\r\nTE: trailers\r\nAccept: */*\r\n"));
    REQUIRE(r.ok());
    CHECK_FALSE(r->tunnel);
    CHECK(r->method == "GET");
    CHECK(to_string(r->target) == "a.org:8080");
    CHECK(r->head ==
          "GET /x/y?q=1 HTTP/1.1\r\nhost: a.org:8080\r\nuser-agent: curl\r\naccept: */*\r\n"
          "connection: close\r\n\r\n");
    CHECK(parse_proxy_request(get("http://a.org"))->head ==
          "GET / HTTP/1.1\r\nhost: a.org\r\nconnection: close\r\n\r\n");
    CHECK(parse_proxy_request(get("http://a.org?x"))->head.starts_with("GET /?x HTTP/1.1\r\n"));
    CHECK(parse_proxy_request(get("http://[::1]/"))->head.find("host: [::1]\r\n") !=
          std::string::npos);
  }

  TEST_CASE("what two readers could read differently is refused") {
    struct Row {
      const char* what;
      std::string head;
    };
    const std::string many = [] {
      std::string out;
      for (std::size_t i = 0; i <= kHttpFieldsMax; ++i) out += "a: b\r\n";
      return out;
    }();
    const Row rows[] = {
        {"another host for the server", get("http://a.org/", "Host: b.org\r\n")},
        {"another port for the server", get("http://a.org/", "Host: a.org:81\r\n")},
        {"two hosts", get("http://a.org/", "Host: a.org\r\nHost: a.org\r\n")},
        {"a host with a user", get("http://a.org/", "Host: u@a.org\r\n")},
        {"another host of a tunnel", "CONNECT a.org:443 HTTP/1.1\r\nHost: b.org:443\r\n\r\n"},
        {"another port of a tunnel", "CONNECT a.org:443 HTTP/1.1\r\nHost: a.org:444\r\n\r\n"},
        {"a tunnel without port", "CONNECT a.org HTTP/1.1\r\n\r\n"},
        {"a tunnel with a body", "CONNECT a.org:443 HTTP/1.1\r\nContent-Length: 4\r\n\r\n"},
        {"user information", get("http://u:p@a.org/")},
        {"a user that looks like a host", get("http://a.org@b.org/")},
        {"a user behind a backslash", get("http://a.org\\@b.org/")},
        {"https in plain", get("https://a.org/")},
        {"another scheme", get("ftp://a.org/")},
        {"a path only", get("/x", "Host: a.org\r\n")},
        {"a star", get("*")},
        {"no host", get("http:///x")},
        {"a fragment", get("http://a.org/#x")},
        {"a blank in the URL", get("http://a.org/a b")},
        {"bytes beyond ASCII", get("http://a.org/\xC3\xA4")},
        {"an octal address", get("http://0177.0.0.1/")},
        {"an address as a number", get("http://2130706433/")},
        {"port zero", get("http://a.org:0/")},
        {"an empty port", get("http://a.org:/")},
        {"HTTP/2", "GET http://a.org/ HTTP/2.0\r\n\r\n"},
        {"no version", "GET http://a.org/\r\n\r\n"},
        {"a bare line feed", "GET http://a.org/ HTTP/1.1\nHost: a.org\r\n\r\n"},
        {"a bare carriage return", get("http://a.org/", "A: b\rHost: b.org\r\n")},
        {"a folded header", get("http://a.org/", "A: b\r\n Host: b.org\r\n")},
        {"a blank before the colon", get("http://a.org/", "Host : a.org\r\n")},
        {"no name", get("http://a.org/", ": x\r\n")},
        {"a NUL", get("http://a.org/", std::string("A: b\0c\r\n", 8))},
        {"two lengths", get("http://a.org/", "Content-Length: 4\r\nContent-Length: 4\r\n")},
        {"a length and chunks",
         get("http://a.org/", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n")},
        {"a signed length", get("http://a.org/", "Content-Length: +4\r\n")},
        {"a list of lengths", get("http://a.org/", "Content-Length: 4, 4\r\n")},
        {"a length beyond all", get("http://a.org/", "Content-Length: 99999999999999999999\r\n")},
        {"another coding", get("http://a.org/", "Transfer-Encoding: gzip, chunked\r\n")},
        {"chunks in 1.0", "POST http://a.org/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {"too many headers", get("http://a.org/", many)},
        {"no method", " http://a.org/ HTTP/1.1\r\n\r\n"},
        {"nothing", "\r\n\r\n"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.what);
      const auto r = parse_proxy_request(row.head);
      CHECK_FALSE(r.ok());
      if (!r.ok()) {
        CHECK(r.error().code == Errc::kInvalid);
        // Evidence, and said to a client: no credentials, no values.
        for (const char* secret : {"u:p", "b.org", "u@"})
          CHECK(r.error().detail.find(secret) == std::string::npos);
      }
    }
  }

  TEST_CASE("no cut and no changed byte of a head makes it another host's") {
    const std::string whole = get("http://a.org/x", "Host: a.org\r\nContent-Length: 3\r\n");
    REQUIRE(parse_proxy_request(whole).ok());
    CHECK(head_length(whole) == whole.size());
    for (std::size_t n = 0; n < whole.size(); ++n) {
      CHECK(head_length(std::string_view(whole).substr(0, n)) == 0);
      CHECK_FALSE(parse_proxy_request(std::string_view(whole).substr(0, n)).ok());
    }
    std::size_t accepted = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string changed = whole;
        changed[i] = static_cast<char>(byte);
        const auto r = parse_proxy_request(changed);
        if (!r.ok() || r->tunnel) continue;
        ++accepted;
        // The server is told of the host that is judged, once.
        const std::string host = "\r\nhost: " + r->target.host.text;
        const std::size_t at = r->head.find(host);
        CHECK(at != std::string::npos);
        CHECK(r->head.find("\r\nhost:", at + 1) == std::string::npos);
      }
    }
    CHECK(100 < accepted);
  }

  TEST_CASE("a body ends where its framing says and nothing behind it is part of it") {
    const std::string next = "GET http://evil/ HTTP/1.1\r\n\r\n";
    struct Row {
      HttpFraming body;
      std::string bytes;
    };
    using Kind = HttpFraming::Kind;
    const Row rows[] = {
        {{Kind::kNone, 0}, ""},
        {{Kind::kLength, 5}, "hello"},
        {{Kind::kChunked, 0}, "0\r\n\r\n"},
        {{Kind::kChunked, 0}, "5\r\nhello\r\n0\r\n\r\n"},
        {{Kind::kChunked, 0}, "00A;x=y\r\n0123456789\r\n1\r\n\n\r\n0\r\nT: v\r\nU: w\r\n\r\n"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.bytes);
      const std::string all = row.bytes + next;
      BodyScanner whole(row.body);
      CHECK(whole.feed(all).value() == row.bytes.size());
      CHECK(whole.done());
      BodyScanner drops(row.body);
      std::size_t used = 0;
      for (const char c : all) used += drops.feed({&c, 1}).value();
      CHECK(used == row.bytes.size());
      if (row.bytes.empty()) continue;
      BodyScanner cut(row.body);
      CHECK(cut.feed(std::string_view(row.bytes).substr(0, row.bytes.size() - 1)).value() ==
            row.bytes.size() - 1);
      CHECK_FALSE(cut.done());
    }
  }

  TEST_CASE("chunks that are none are refused") {
    for (const char* bytes :
         {"\r\n", "x\r\n", " 5\r\nhello", "5\nhello", "5\r\nhelloX", "5\r\nhello\rX", "-1\r\n",
          "0x5\r\n", "fffffffffffffff\r\n", ";x\r\n", "5;x\ny", "0\r\nT: v\nU\r\n", "0\r\n\n"}) {
      CAPTURE(bytes);
      BodyScanner scanner({HttpFraming::Kind::kChunked, 0});
      CHECK_FALSE(scanner.feed(bytes).ok());
    }
    BodyScanner endless({HttpFraming::Kind::kChunked, 0});
    CHECK_FALSE(endless.feed("0\r\n" + std::string(1 << 20, 'x')).ok());
  }
}

}  // namespace proctor
