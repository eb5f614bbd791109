#pragma once
// Heads and bodies of HTTP/1.1, strict: what two programs could read as different messages is
// refused rather than repaired.  Pure; any thread.
// Fails with kInvalid and a text that names neither targets nor values.
// Source: RFC 9110, RFC 9112 (sections 3, 5, 6 and 7).
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"

namespace proctor {
inline constexpr std::size_t kHttpHeadBytes = std::size_t{32} << 10;
inline constexpr std::size_t kHttpFieldsMax = 100;

using HttpFields = std::vector<std::pair<std::string, std::string>>;  // names in lower case

// The first of that name; null: none.
const std::string* find_field(const HttpFields& fields, std::string_view name);
std::size_t count_fields(const HttpFields& fields, std::string_view name);

// What follows the head and still belongs to the message.
struct HttpFraming {
  enum class Kind { kNone, kLength, kChunked, kToTheEnd };  // the last of answers alone
  Kind kind = Kind::kNone;
  std::uint64_t bytes = 0;  // kLength
};

struct HttpHead {
  std::string_view line;  // the first, without its end
  HttpFields fields;
  HttpFraming body;
};
// How many bytes of `bytes` are the head, with its empty line; 0: not all of it is here.
std::size_t head_length(std::string_view bytes);
// `head` as head_length() found it.
Result<HttpHead> read_head(std::string_view head);

struct RequestHead {
  std::string method, target;
  bool old_version = false;  // HTTP/1.0
  HttpFields fields;
  HttpFraming body;
};
// `head` as head_length() found it.
Result<RequestHead> read_request_head(std::string_view head);

// Takes chunks apart.
class ChunkReader {
 public:
  // Appends what chunks hold to `out`, if there is one; how many bytes belong to the body: less
  // than all only when done().  kInvalid: no chunks.
  Result<std::size_t> feed(std::string_view bytes, std::string* out);
  bool done() const { return state_ == State::kDone; }

 private:
  enum class State { kSize, kExtension, kSizeEnd, kData, kDataEnd, kTrailer, kDone };
  Status on_byte(char c);
  Status end_of_size();
  State state_ = State::kSize;
  std::uint64_t left_ = 0;
  std::size_t digits_ = 0, spoken_ = 0;  // of a size; of extensions and trailers in all
  std::size_t line_ = 0;                 // of a trailer
  char before_ = 0;
};

// Follows a message's body through the bytes that come.
class BodyScanner {
 public:
  explicit BodyScanner(HttpFraming body = {}) : body_(body) {}
  // Appends what the body holds to `out`, if there is one; how many bytes belong to the message:
  // less than all only when done().  kInvalid: not chunks as agreed.
  Result<std::size_t> feed(std::string_view bytes, std::string* out = nullptr);
  bool done() const {
    if (body_.kind == HttpFraming::Kind::kChunked) return chunks_.done();
    return body_.kind != HttpFraming::Kind::kToTheEnd && body_.bytes == 0;
  }

 private:
  HttpFraming body_;  // `bytes`: still to come
  ChunkReader chunks_;
};
}  // namespace proctor
