#pragma once
// As much HTTP/1.1 as the Docker Engine speaks on its unix socket: one request at a time on a kept
// connection, bodies by length, in chunks or to the end, and the upgrade to a raw stream (attach).
// Every wait has a deadline, every length a bound; the engine is treated as a stranger.
// HttpReplyParser and DockerFrames are pure.  A DockerConnection belongs to one thread.
// Fails with kUnavailable (gone, hung, broken off, deadline), kCorrupt (not HTTP as agreed),
// kExhausted (a body beyond its bound).
// Source: RFC 9112; Docker Engine API v1.41, "attach to a container: stream format".
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "common/base/owned.h"
#include "common/base/result.h"

namespace proctor {
struct HttpReply {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// Bytes in, one reply out.
class HttpReplyParser {
 public:
  explicit HttpReplyParser(std::size_t body_max) : body_max_(body_max) {}
  // How many of the bytes belong to this reply; what is behind them is left to the caller.
  Result<std::size_t> feed(std::string_view bytes);
  // The peer closed: complete for bodies that last to the end, an error otherwise.
  Status close();
  bool done() const { return state_ == State::kDone; }
  const HttpReply& reply() const { return reply_; }
  HttpReply take() { return std::move(reply_); }
  // May another request follow on this connection?
  bool keeps_alive() const { return keeps_alive_; }

 private:
  enum class State { kHead, kLength, kToEnd, kChunkLine, kChunk, kChunkEnd, kTrailer, kDone };
  Result<std::size_t> feed_line(std::string_view bytes);
  Result<std::size_t> feed_body(std::string_view bytes);
  Status on_line(std::string_view line);
  Status on_status_line(std::string_view line);
  Status on_header(std::string_view line);
  Status on_head_end();
  Status on_chunk_line(std::string_view line);

  std::size_t body_max_;
  State state_ = State::kHead;
  std::string line_;
  std::size_t head_bytes_ = 0;
  std::uint64_t left_ = 0;
  bool keeps_alive_ = true;
  HttpReply reply_;
};

// The multiplexed stream of an attach without a terminal: frames of {stream, 0, 0, 0, length}.
class DockerFrames {
 public:
  enum class Stream { kStdout, kStderr };
  using Sink = std::function<void(Stream, std::string_view)>;
  // Passes payload on as it comes, so that a frame's length asks for no memory.
  Status feed(std::string_view bytes, const Sink& sink);
  // Ended between frames?
  bool at_boundary() const { return have_ == 0 && left_ == 0; }

 private:
  std::array<char, 8> head_{};
  std::size_t have_ = 0;
  std::uint32_t left_ = 0;
  Stream stream_ = Stream::kStdout;
};

class DockerConnection {
 public:
  using Clock = std::chrono::steady_clock;

  static Result<DockerConnection> open(const std::string& socket, Clock::time_point deadline);

  // `body`: JSON (`type` says what else), or empty.
  Result<HttpReply> call(std::string_view method, std::string_view target, std::string_view body,
                         Clock::time_point deadline, std::size_t body_max = std::size_t{4} << 20);
  // The two halves of call(), for those who wait for other things too: begin, then poll fd() for
  // reading and call progress() until it says true; then finish().
  Status begin(std::string_view method, std::string_view target, std::string_view body,
               Clock::time_point deadline, std::size_t body_max = std::size_t{4} << 20,
               std::string_view type = "application/json");
  Result<bool> progress();
  HttpReply finish() { return parser_.take(); }
  // The part of the reply that has come so far.
  const HttpReply& so_far() const { return parser_.reply(); }
  // Turns the connection into a raw stream; the reply's status is 101 or 200, else an error reply.
  Result<HttpReply> upgrade(std::string_view target, Clock::time_point deadline);
  // Raw bytes after upgrade(): appends at most `max` to `out`; false at the end of the stream.
  // True with an empty append: there is nothing now.
  Result<bool> read_raw(std::string& out, std::size_t max);

  int fd() const { return fd_.get(); }
  // Still usable for another call: kept alive and not closed by the engine meanwhile.
  bool fresh() const;

 private:
  explicit DockerConnection(UniqueFd fd) : fd_(std::move(fd)) {}
  Status send(std::string_view bytes, Clock::time_point deadline);
  Status wait(short events, Clock::time_point deadline) const;
  Status await_reply(Clock::time_point deadline);

  UniqueFd fd_;
  HttpReplyParser parser_{0};
  std::string raw_;  // read behind an upgrade's head
  bool usable_ = true;
};

// Percent-encodes everything outside RFC 3986's unreserved characters.
std::string url_encode(std::string_view text);
}  // namespace proctor
