#include "worker/sandbox/docker_http.h"

#include <doctest/doctest.h>

using namespace proctor;

namespace {

const std::string kPlain =
    "HTTP/1.1 201 Created\r\nApi-Version: 1.41\r\nContent-Length: 5\r\n\r\nhello";
const std::string kChunked =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nT: "
    "v\r\n\r\n";

Result<HttpReply> parse(std::string_view bytes, std::size_t piece, std::size_t body_max = 100) {
  HttpReplyParser p(body_max);
  while (!bytes.empty()) {
    PROCTOR_TRY(const std::size_t used, p.feed(bytes.substr(0, piece)));
    if (used == 0) return Error{Errc::kConflict, "bytes left over"};
    bytes.remove_prefix(used);
  }
  PROCTOR_CHECK_OK(p.close());
  return p.take();
}

std::string frame(char stream, std::string_view payload) {
  std::string out{stream, 0, 0, 0, 0, 0, 0, static_cast<char>(payload.size())};
  return out + std::string(payload);
}

}  // namespace

TEST_SUITE("sandbox") {
  TEST_CASE("replies are read in whatever pieces they come") {
    for (std::size_t piece = 1; piece <= kChunked.size(); ++piece) {
      CAPTURE(piece);
      const auto plain = parse(kPlain, piece);
      REQUIRE(plain.ok());
      CHECK(plain->status == 201);
      CHECK(plain->headers.at("api-version") == "1.41");
      CHECK(plain->body == "hello");
      const auto chunked = parse(kChunked, piece);
      REQUIRE(chunked.ok());
      CHECK(chunked->body == "hello");
    }
    CHECK(parse("HTTP/1.0 200 OK\r\n\r\nto the end", 3)->body == "to the end");
    CHECK(parse("HTTP/1.1 204 No Content\r\n\r\n", 100)->status == 204);
    CHECK(parse("HTTP/1.1 100 Continue\r\n\r\n" + kPlain, 100)->status == 201);
  }

  TEST_CASE("a reply that ends early is an error at every length") {
    for (const std::string& whole : {kPlain, kChunked}) {
      for (std::size_t n = 0; n < whole.size(); ++n) {
        CAPTURE(n);
        CHECK_FALSE(parse(whole.substr(0, n), 7).ok());
      }
    }
  }

  TEST_CASE("what is not the agreed HTTP is refused") {
    struct Row {
      const char* what;
      std::string bytes;
    };
    const std::string ok = "HTTP/1.1 200 OK\r\n";
    const Row rows[] = {
        {"another protocol", "220 smtp ready\r\n"},
        {"another version", "HTTP/2.0 200 OK\r\n\r\n"},
        {"status out of range", "HTTP/1.1 999 X\r\n\r\n"},
        {"status of four digits", "HTTP/1.1 2000 X\r\n\r\n"},
        {"bare line feeds", "HTTP/1.1 200 OK\n\n"},
        {"a header without a colon", ok + "Nonsense\r\n\r\n"},
        {"a header with a space in its name", ok + "A b: c\r\n\r\n"},
        {"a negative length", ok + "Content-Length: -1\r\n\r\n"},
        {"two lengths", ok + "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx"},
        {"length and chunks", ok + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {"an unknown encoding", ok + "Transfer-Encoding: gzip\r\n\r\n"},
        {"a chunk size that is none", ok + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n"},
        {"a chunk longer than it says", ok + "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n"},
        {"a huge chunk", ok + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"},
        {"a chunk size beyond 64 bits",
         ok + "Transfer-Encoding: chunked\r\n\r\n1ffffffffffffffff\r\n"},
        {"a body beyond its bound", ok + "Content-Length: 101\r\n\r\n"},
        {"a line without end", std::string(20'000, 'x')},
        {"an unexpected interim status", "HTTP/1.1 103 X\r\n\r\n"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.what);
      CHECK_FALSE(parse(row.bytes, 4096).ok());
    }
    std::string many = ok;
    for (int i = 0; i < 10'000; ++i) many += "X" + std::to_string(i) + ": y\r\n";
    CHECK_FALSE(parse(many, 4096).ok());
  }

  TEST_CASE("bytes behind a reply are left to the caller") {
    HttpReplyParser p(100);
    const std::string upgrade = "HTTP/1.1 101 UPGRADED\r\nUpgrade: tcp\r\n\r\n";
    CHECK(p.feed(upgrade + "raw").value() == upgrade.size());
    CHECK(p.done());
    CHECK(p.reply().status == 101);
  }

  TEST_CASE("output frames come apart in whatever pieces they come") {
    const std::string bytes = frame(1, "out") + frame(2, "err") + frame(1, "") + frame(1, "put");
    for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
      CAPTURE(piece);
      DockerFrames frames;
      std::string out, err;
      for (std::size_t at = 0; at < bytes.size(); at += piece) {
        CHECK(frames
                  .feed(std::string_view(bytes).substr(at, piece),
                        [&](DockerFrames::Stream s, std::string_view b) {
                          (s == DockerFrames::Stream::kStdout ? out : err) += b;
                        })
                  .ok());
      }
      CHECK(frames.at_boundary());
      CHECK(out == "output");
      CHECK(err == "err");
    }
  }

  TEST_CASE("frames of unknown kinds are refused and a cut one is noticed") {
    const auto drop = [](DockerFrames::Stream, std::string_view) {};
    for (char stream : {char{0}, char{3}, char{'H'}}) {
      DockerFrames frames;
      CHECK_FALSE(frames.feed(frame(stream, "x"), drop).ok());
    }
    DockerFrames padded;
    CHECK_FALSE(padded.feed(std::string("\1\1\0\0\0\0\0\1x", 9), drop).ok());
    DockerFrames cut;
    CHECK(cut.feed(frame(1, "abc").substr(0, 9), drop).ok());
    CHECK_FALSE(cut.at_boundary());
    DockerFrames cut_head;
    CHECK(cut_head.feed(std::string("\1\0", 2), drop).ok());
    CHECK_FALSE(cut_head.at_boundary());
  }

  TEST_CASE("what goes into a URL is encoded") {
    CHECK(url_encode("a-b_c.d~1") == "a-b_c.d~1");
    CHECK(url_encode("{\"a\": 1}/\xff") == "%7B%22a%22%3A%201%7D%2F%FF");
  }
}
