#pragma once
// HTTP at the gateway's door: which of its places a request asks for, and the heads and bodies of
// requests and answers.  Pure; any thread.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/result.h"
#include "common/contract/models_file.h"

namespace proctor {
// Which of the gateway's places a request asks for.
struct Route {
  enum class Place {
    kCall,    // of a model, by `api`
    kModels,  // the list of them
    kModel,   // `model` of the list
    kStatus,  // what the run has left
    kHealth,
    kOptions,
    kUnknown,
    kWrongMethod,  // of a known place; `allow` says which it takes
  };
  Place place = Place::kUnknown;
  ModelApi api = ModelApi::kChat;
  std::string model{};
  std::string_view allow{};
};

// Exact paths, with or without the leading /v1, and no query but beta=true.
Route route_of(std::string_view method, std::string_view target);

std::string_view path_of(ModelApi api);  // behind an endpoint's URL

// The head of one request to the gateway, and what follows it, strict: what two programs could read
// as different requests is refused, not repaired.
// Source: RFC 9110, RFC 9112 (sections 3, 5, 6 and 7).

inline constexpr std::size_t kGatewayHeadBytes = std::size_t{32} << 10;
inline constexpr std::size_t kGatewayFieldsMax = 100;

using HttpFields = std::vector<std::pair<std::string, std::string>>;  // names in lower case

// The first of that name; null: none.
const std::string* find_field(const HttpFields& fields, std::string_view name);

struct HttpFraming {
  enum class Kind { kNone, kLength, kChunked, kToTheEnd };  // the last of answers alone
  Kind kind = Kind::kNone;
  std::uint64_t bytes = 0;  // kLength
};

struct GatewayHead {
  std::string method, target;
  HttpFields fields;
  HttpFraming body;
  bool last = false;              // the connection ends with it
  bool expects_continue = false;  // waits for a word before it sends the body
};
struct GateRefusal {
  int status = 400;
  std::string why;
};

// How many bytes of `bytes` are the head, with its empty line; 0: not all of it is here.
std::size_t gateway_head_length(std::string_view bytes);
// `head` as gateway_head_length() found it.
std::variant<GatewayHead, GateRefusal> judge_head(std::string_view head);

struct AnswerHead {
  int status = 0;
  HttpFields fields;
  HttpFraming body;
  bool last = false;
};
// The head of a provider's answer to a request that was no HEAD.  kInvalid: it is no answer.
Result<AnswerHead> read_answer_head(std::string_view head);

// Takes chunks apart.
class ChunkReader {
 public:
  // Appends what chunks hold to `out`; how many bytes belong to the body: less than all only when
  // done().  kInvalid: no chunks.
  Result<std::size_t> feed(std::string_view bytes, std::string& out);
  bool done() const { return state_ == State::kDone; }

 private:
  enum class State { kSize, kExtension, kSizeEnd, kData, kDataEnd, kTrailer, kDone };
  Status on_byte(char c);
  Status end_of_size();
  State state_ = State::kSize;
  std::uint64_t left_ = 0;
  std::size_t digits_ = 0, extra_ = 0, line_ = 0;
  char before_ = 0;
};
}  // namespace proctor
