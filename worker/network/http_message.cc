#include "worker/network/http_message.h"

#include <algorithm>
#include <optional>

#include "common/base/parse.h"

namespace proctor {
namespace {
Error broken(std::string why) {
  return Error{Errc::kInvalid, std::move(why)};
}

bool is_token(std::string_view text) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || is_digit(c) ||
           kOthers.find(c) != std::string_view::npos;
  });
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7F;
}

Result<HttpFields> read_fields(std::string_view left) {
  HttpFields out;
  while (!left.empty()) {
    const std::string_view line = left.substr(0, left.find("\r\n"));
    left.remove_prefix(line.size() + 2);
    if (line.empty()) break;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon)))
      return broken("a header line that is none");
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (std::ranges::any_of(value, is_control)) return broken("a control byte in a header");
    if (kHttpFieldsMax <= out.size()) return broken("more than 100 headers");
    out.emplace_back(lowered(line.substr(0, colon)), value);
  }
  return out;
}

Result<HttpFraming> framing_of(const HttpFields& fields) {
  if (1 < count_fields(fields, "content-length") + count_fields(fields, "transfer-encoding"))
    return broken("more than one length of the body");
  HttpFraming out;
  if (const std::string* coding = find_field(fields, "transfer-encoding")) {
    if (lowered(*coding) != "chunked") return broken("a Transfer-Encoding other than chunked");
    out.kind = HttpFraming::Kind::kChunked;
  } else if (const std::string* length = find_field(fields, "content-length")) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 53U;
    const auto bytes = whole_number<std::uint64_t>(*length);
    if (!bytes || kMost < *bytes) return broken("a Content-Length that is no length");
    out = {HttpFraming::Kind::kLength, *bytes};
  }
  return out;
}
}  // namespace

const std::string* find_field(const HttpFields& fields, std::string_view name) {
  const auto it = std::ranges::find(fields, name, &HttpFields::value_type::first);
  return it == fields.end() ? nullptr : &it->second;
}

std::size_t count_fields(const HttpFields& fields, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::count(fields, name, &HttpFields::value_type::first));
}

std::size_t head_length(std::string_view bytes) {
  const std::size_t end = bytes.find("\r\n\r\n");
  return end == std::string_view::npos ? 0 : end + 4;
}

Result<HttpHead> read_head(std::string_view head) {
  // A line that ends in a bare LF, or one folded, is two lines to some and one to others.
  for (std::size_t i = 0; i < head.size(); ++i)
    if ((head[i] == '\n' && (i == 0 || head[i - 1] != '\r')) ||
        (head[i] == '\r' && (i + 1 == head.size() || head[i + 1] != '\n')))
      return broken("a bare carriage return or line feed");
  if (!head.ends_with("\r\n\r\n")) return broken("the head has no end");
  HttpHead out{head.substr(0, head.find("\r\n")), {}, {}};
  PROCTOR_TRY(out.fields, read_fields(head.substr(out.line.size() + 2)));
  PROCTOR_TRY(out.body, framing_of(out.fields));
  return out;
}

Result<RequestHead> read_request_head(std::string_view head) {
  PROCTOR_TRY(HttpHead read, read_head(head));
  const std::vector<std::string_view> parts = split(read.line, ' ');
  if (parts.size() < 3) return broken("no request line");
  const std::string_view method = parts.front(), version = parts.back();
  constexpr std::size_t kMethodMax = 20;
  if (!is_token(method) || kMethodMax < method.size()) return broken("no method");
  const std::string_view target =
      read.line.substr(method.size() + 1, read.line.size() - method.size() - version.size() - 2);
  if (!std::ranges::all_of(target, [](char c) { return ' ' < c && c < 0x7F; }))
    return broken("a target with blanks, control or non-ASCII bytes");
  const bool old_version = version == "HTTP/1.0";
  if (version != "HTTP/1.1" && !old_version) return broken("not HTTP/1.1");
  if (old_version && read.body.kind == HttpFraming::Kind::kChunked)
    return broken("chunks in HTTP/1.0");
  return RequestHead{std::string(method), std::string(target), old_version, std::move(read.fields),
                     read.body};
}

Result<std::size_t> ChunkReader::feed(std::string_view bytes, std::string* out) {
  std::size_t used = 0;
  while (used < bytes.size() && !done()) {
    if (state_ != State::kData) {
      PROCTOR_CHECK_OK(on_byte(bytes[used++]));
      continue;
    }
    const auto now = static_cast<std::size_t>(
        std::min<std::uint64_t>(left_, static_cast<std::uint64_t>(bytes.size() - used)));
    if (out != nullptr) out->append(bytes.substr(used, now));
    used += now;
    left_ -= now;
    if (left_ == 0) {
      state_ = State::kDataEnd;
      before_ = 0;
    }
  }
  return used;
}

Status ChunkReader::end_of_size() {
  if (digits_ == 0) return broken("a chunk without a size");
  digits_ = 0;
  before_ = 0;
  line_ = 0;
  state_ = left_ == 0 ? State::kTrailer : State::kData;
  return ok_status();
}

Status ChunkReader::on_byte(char c) {
  constexpr std::size_t kDigitsMax = 13, kSpokenMax = std::size_t{16} << 10;
  switch (state_) {
    case State::kSize: {
      constexpr std::string_view kHex = "0123456789abcdef";
      const std::size_t digit =
          kHex.find('A' <= c && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
      if (digit != std::string_view::npos) {
        left_ = (left_ << 4U) + digit;
        return ++digits_ <= kDigitsMax ? ok_status() : broken("a chunk too large");
      }
      if (c != '\r' && c != ';') return broken("a chunk without a size");
      state_ = c == '\r' ? State::kSizeEnd : State::kExtension;
      return ok_status();
    }
    case State::kExtension:
      if (c == '\r') state_ = State::kSizeEnd;
      if (c == '\n' || kSpokenMax < ++spoken_) return broken("a chunk's extension without end");
      return ok_status();
    case State::kSizeEnd:
      return c == '\n' ? end_of_size() : broken("a bare carriage return");
    case State::kDataEnd:
      if (before_ == 0) {
        before_ = c;
        return c == '\r' ? ok_status() : broken("a chunk longer than its size");
      }
      left_ = 0;
      state_ = State::kSize;
      return c == '\n' ? ok_status() : broken("a chunk longer than its size");
    case State::kTrailer:
      if (kSpokenMax < ++spoken_) return broken("trailers without end");
      if ((c == '\n') != (before_ == '\r')) return broken("a bare line end in a trailer");
      if (c == '\n') {
        if (line_ == 0) state_ = State::kDone;
        line_ = 0;
      } else if (c != '\r') {
        ++line_;
      }
      before_ = c;
      return ok_status();
    case State::kData:
    case State::kDone:
      break;
  }
  return ok_status();
}

Result<std::size_t> BodyScanner::feed(std::string_view bytes, std::string* out) {
  if (body_.kind == HttpFraming::Kind::kChunked) return chunks_.feed(bytes, out);
  if (body_.kind != HttpFraming::Kind::kToTheEnd) {
    bytes = bytes.substr(0, body_.bytes);
    body_.bytes -= bytes.size();
  }
  if (out != nullptr) out->append(bytes);
  return bytes.size();
}
}  // namespace proctor
