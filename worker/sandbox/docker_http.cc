#include "worker/sandbox/docker_http.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "common/base/files.h"
#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor {
// Replies and frames out of bytes.  Pure.

namespace {
constexpr std::size_t kHeadMax = std::size_t{64} << 10;
constexpr std::size_t kLineMax = std::size_t{16} << 10;

Error corrupt(const std::string& text) {
  return Error{Errc::kCorrupt, "docker engine: " + text};
}

bool parse_number(std::string_view text, int base, std::uint64_t& out) {
  return take_number(text, out, base) && text.empty();
}
}  // namespace

Result<std::size_t> HttpReplyParser::feed(std::string_view bytes) {
  std::size_t used = 0;
  while (used < bytes.size() && state_ != State::kDone) {
    const std::string_view rest = bytes.substr(used);
    const bool by_lines = state_ == State::kHead || state_ == State::kChunkLine ||
                          state_ == State::kChunkEnd || state_ == State::kTrailer;
    PROCTOR_TRY(const std::size_t n, by_lines ? feed_line(rest) : feed_body(rest));
    used += n;
  }
  return used;
}

Result<std::size_t> HttpReplyParser::feed_line(std::string_view bytes) {
  const std::size_t end = bytes.find('\n');
  const std::size_t n = end == std::string_view::npos ? bytes.size() : end + 1;
  line_.append(bytes.substr(0, n));
  if (kLineMax < line_.size()) return corrupt("a line of more than 16 KiB");
  if (end == std::string_view::npos) return n;
  if (line_.size() < 2 || line_[line_.size() - 2] != '\r') return corrupt("a line without CR LF");
  line_.resize(line_.size() - 2);
  const std::string line = std::exchange(line_, {});
  PROCTOR_CHECK_OK(on_line(line));
  return n;
}

Status HttpReplyParser::on_line(std::string_view line) {
  if (state_ == State::kChunkLine) return on_chunk_line(line);
  if (state_ == State::kChunkEnd) {
    if (!line.empty()) return corrupt("a chunk longer than it said");
    state_ = State::kChunkLine;
    return ok_status();
  }
  head_bytes_ += line.size() + 2;
  if (kHeadMax < head_bytes_) return corrupt("headers of more than 64 KiB");
  if (state_ == State::kTrailer) {
    if (line.empty()) state_ = State::kDone;
    return ok_status();
  }
  if (reply_.status == 0) return on_status_line(line);
  return line.empty() ? on_head_end() : on_header(line);
}

Status HttpReplyParser::on_status_line(std::string_view line) {
  std::uint64_t status = 0;
  if (line.size() < 12 || !(line.starts_with("HTTP/1.1 ") || line.starts_with("HTTP/1.0 ")) ||
      !parse_number(line.substr(9, 3), 10, status) || (12 < line.size() && line[12] != ' ') ||
      status < 100 || 599 < status) {
    return corrupt("expected an HTTP status line, found '" + printable(line, 60) + "'");
  }
  if (line[7] == '0') keeps_alive_ = false;
  reply_.status = static_cast<int>(status);
  return ok_status();
}

Status HttpReplyParser::on_header(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == 0 || colon == std::string_view::npos || line.find(' ') < colon) {
    return corrupt("a header without a name: '" + printable(line, 60) + "'");
  }
  const std::string name = lowered(line.substr(0, colon));
  const std::string value(trimmed(line.substr(colon + 1)));
  const auto [at, is_new] = reply_.headers.emplace(name, value);
  // Two lengths are how replies get split differently by two readers.
  if (!is_new && (name == "content-length" || name == "transfer-encoding")) {
    return corrupt("header " + name + " twice");
  }
  if (name == "connection" && lowered(value) == "close") keeps_alive_ = false;
  return ok_status();
}

Status HttpReplyParser::on_head_end() {
  const auto encoding = reply_.headers.find("transfer-encoding");
  const auto length = reply_.headers.find("content-length");
  if (reply_.status == 101 || reply_.status == 204 || reply_.status == 304) {
    state_ = State::kDone;
  } else if (reply_.status < 200) {
    const int status = reply_.status;
    reply_ = HttpReply{};  // an interim reply; the real one follows
    if (status != 100) return corrupt("interim status " + std::to_string(status));
  } else if (encoding != reply_.headers.end()) {
    if (lowered(encoding->second) != "chunked" || length != reply_.headers.end()) {
      return corrupt("transfer encoding '" + printable(encoding->second, 60) + "'");
    }
    state_ = State::kChunkLine;
  } else if (length != reply_.headers.end()) {
    if (!parse_number(length->second, 10, left_)) {
      return corrupt("content length '" + printable(length->second, 60) + "'");
    }
    if (body_max_ < left_)
      return Error{Errc::kExhausted, "docker engine: a reply beyond its bound"};
    state_ = left_ == 0 ? State::kDone : State::kLength;
  } else if (reply_.headers.contains("content-type") &&
             reply_.headers["content-type"].starts_with("application/vnd.docker.")) {
    state_ = State::kDone;  // what follows is the raw stream of an attach (200 instead of 101)
  } else {
    state_ = State::kToEnd;
    keeps_alive_ = false;
  }
  return ok_status();
}

Status HttpReplyParser::on_chunk_line(std::string_view line) {
  const std::string_view size = line.substr(0, std::min(line.find(';'), line.size()));
  if (!parse_number(trimmed(size), 16, left_)) {
    return corrupt("chunk size '" + printable(line, 60) + "'");
  }
  if (body_max_ - reply_.body.size() < left_) {
    return Error{Errc::kExhausted, "docker engine: a reply beyond its bound"};
  }
  state_ = left_ == 0 ? State::kTrailer : State::kChunk;
  return ok_status();
}

Result<std::size_t> HttpReplyParser::feed_body(std::string_view bytes) {
  if (state_ == State::kToEnd) {
    if (body_max_ - reply_.body.size() < bytes.size()) {
      return Error{Errc::kExhausted, "docker engine: a reply beyond its bound"};
    }
    reply_.body.append(bytes);
    return bytes.size();
  }
  const std::size_t n = std::min<std::uint64_t>(left_, bytes.size());
  reply_.body.append(bytes.substr(0, n));
  left_ -= n;
  if (left_ == 0) state_ = state_ == State::kChunk ? State::kChunkEnd : State::kDone;
  return n;
}

Status HttpReplyParser::close() {
  keeps_alive_ = false;
  if (state_ == State::kToEnd) state_ = State::kDone;
  if (state_ == State::kDone) return ok_status();
  return Error{Errc::kUnavailable, "docker engine: it closed the connection in the middle"};
}

Status DockerFrames::feed(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    if (0 < left_) {
      const auto n = static_cast<std::uint32_t>(std::min<std::size_t>(left_, bytes.size()));
      sink(stream_, bytes.substr(0, n));
      bytes.remove_prefix(n);
      left_ -= n;
      continue;
    }
    head_[have_++] = bytes.front();
    bytes.remove_prefix(1);
    if (have_ < head_.size()) continue;
    have_ = 0;
    if ((head_[0] != 1 && head_[0] != 2) || head_[1] != 0 || head_[2] != 0 || head_[3] != 0) {
      return corrupt("an output frame of an unknown kind: " +
                     printable(std::string_view(head_.data(), head_.size())));
    }
    stream_ = head_[0] == 1 ? Stream::kStdout : Stream::kStderr;
    for (std::size_t i = 4; i < 8; ++i) left_ = (left_ << 8) | static_cast<unsigned char>(head_[i]);
  }
  return ok_status();
}

constexpr std::size_t kReadChunk = std::size_t{64} << 10;

Result<DockerConnection> DockerConnection::open(const std::string& socket,
                                                Clock::time_point deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.empty() || sizeof address.sun_path <= socket.size()) {
    return Error{Errc::kInvalid, "docker socket '" + printable(socket) + "': not a usable path"};
  }
  std::memcpy(address.sun_path, socket.data(), socket.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno_error("socket", errno);
  const auto* where = static_cast<const sockaddr*>(static_cast<const void*>(&address));
  while (::connect(fd.get(), where, sizeof address) != 0) {
    // A unix socket whose queue is full does not wait by itself.
    if ((errno == EAGAIN || errno == EINTR) && Clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      continue;
    }
    return Error{Errc::kUnavailable,
                 "docker engine at " + socket + ": " + errno_error("connect", errno).detail};
  }
  return DockerConnection(std::move(fd));
}

Status DockerConnection::wait(short events, Clock::time_point deadline) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd p{fd_.get(), events, 0};
    const int n =
        ::poll(&p, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000)));
    if (0 < n) return ok_status();
    if (n < 0 && errno != EINTR) return errno_error("poll", errno);
    if (n == 0 && deadline <= Clock::now()) {
      return Error{Errc::kUnavailable, "docker engine: no answer within the time allowed"};
    }
  }
}

Status DockerConnection::send(std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (0 <= n) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) {
      return Error{Errc::kUnavailable, "docker engine: " + errno_error("send", errno).detail};
    }
    PROCTOR_CHECK_OK(wait(POLLOUT, deadline));
  }
  return ok_status();
}

Status DockerConnection::begin(std::string_view method, std::string_view target,
                               std::string_view body, Clock::time_point deadline,
                               std::size_t body_max, std::string_view type) {
  parser_ = HttpReplyParser(body_max);
  usable_ = false;  // until the reply has been read to its end
  std::string head = std::string(method) + " " + std::string(target) +
                     " HTTP/1.1\r\nHost: docker\r\nUser-Agent: proctor\r\n";
  if (!body.empty()) head += "Content-Type: " + std::string(type) + "\r\n";
  if (!body.empty() || method == "POST") {
    head += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  }
  head += "\r\n";
  return send(head + std::string(body), deadline);
}

Result<bool> DockerConnection::progress() {
  std::vector<char> buffer(kReadChunk);
  while (!parser_.done()) {
    const ssize_t n = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return false;
    if (n < 0) {
      return Error{Errc::kUnavailable, "docker engine: " + errno_error("receive", errno).detail};
    }
    if (n == 0) {
      PROCTOR_CHECK_OK(parser_.close());
      return true;
    }
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
    PROCTOR_TRY(const std::size_t used, parser_.feed(bytes));
    raw_.append(bytes.substr(used));
  }
  usable_ = parser_.keeps_alive() && raw_.empty();
  return true;
}

Status DockerConnection::await_reply(Clock::time_point deadline) {
  for (;;) {
    PROCTOR_TRY(const bool done, progress());
    if (done) return ok_status();
    PROCTOR_CHECK_OK(wait(POLLIN, deadline));
  }
}

Result<HttpReply> DockerConnection::call(std::string_view method, std::string_view target,
                                         std::string_view body, Clock::time_point deadline,
                                         std::size_t body_max) {
  PROCTOR_CHECK_OK(begin(method, target, body, deadline, body_max));
  PROCTOR_CHECK_OK(await_reply(deadline));
  return finish();
}

Result<HttpReply> DockerConnection::upgrade(std::string_view target, Clock::time_point deadline) {
  parser_ = HttpReplyParser(std::size_t{64} << 10);
  const std::string head =
      "POST " + std::string(target) +
      " HTTP/1.1\r\nHost: docker\r\nUser-Agent: proctor\r\nContent-Length: 0\r\n"
      "Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n";
  usable_ = false;
  PROCTOR_CHECK_OK(send(head, deadline));
  PROCTOR_CHECK_OK(await_reply(deadline));
  usable_ = false;
  return finish();
}

Result<bool> DockerConnection::read_raw(std::string& out, std::size_t max) {
  if (!raw_.empty()) {
    out.append(raw_, 0, max);
    raw_.erase(0, max);
    return true;
  }
  const std::size_t before = out.size();
  out.resize(before + std::min(max, kReadChunk));
  ssize_t n = -1;
  do {
    n = ::recv(fd_.get(), out.data() + before, out.size() - before, 0);
  } while (n < 0 && errno == EINTR);
  const int error = errno;
  out.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  if (n < 0 && error != EAGAIN) {
    return Error{Errc::kUnavailable, "docker engine: " + errno_error("receive", error).detail};
  }
  return n != 0;
}

bool DockerConnection::fresh() const {
  if (!usable_ || !fd_.valid()) return false;
  // Anything to read on an idle connection is its end.
  pollfd p{fd_.get(), POLLIN, 0};
  return ::poll(&p, 1, 0) == 0;
}

std::string url_encode(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (char c : text) {
    const bool plain = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      out.push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out.push_back('%');
      out.push_back(kHex[byte >> 4]);
      out.push_back(kHex[byte & 15]);
    }
  }
  return out;
}
}  // namespace proctor
