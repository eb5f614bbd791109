#pragma once
// Model: something that answers a prompt once.  An endpoint on the network or a program of the
// worker's operator; what it says is hostile: any size, any bytes, or nothing.
// Blocking, thread-safe: several slots ask at once.  Never fails: how a call ended is its reply.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "common/contract/models_file.h"

namespace proctor {

// More than this of an answer is refused, whatever it holds.
inline constexpr std::size_t kModelReplyBytes = std::size_t{16} << 20;

struct ModelRequest {
  std::string model;  // as it is named to the provider
  std::string task;   // for a program: which problem, which sample
  std::uint32_t sample = 1;
  std::string system, user;
  std::uint64_t max_output_tokens = 0;
  std::chrono::milliseconds timeout{60'000};
};

struct ModelUsage {
  std::uint64_t input_tokens = 0, output_tokens = 0;
};

struct ModelReply {
  enum class End {
    kAnswered,
    kBusy,        // no room now: ask later
    kFailed,      // may heal
    kUnreadable,  // an answer, of a size that is none
    kRefused,     // will never be answered as it is asked
    kNoAccess,    // nothing will be: the operator's key, account or address
    kStopped,
  };
  End end = End::kFailed;
  std::string text;                 // kAnswered
  std::optional<ModelUsage> usage;  // as the provider says
  bool billed = true;               // may have cost something
  std::chrono::milliseconds retry_after{0};
  std::string why;  // of every end but kAnswered; safe to print
  // Likewise, without what differs between two times that it fails in the same way; empty: as why.
  std::string cause{};
  std::string raw;  // what came, for the evidence, without the key
};

class Model {
 public:
  virtual ~Model() = default;
  virtual ModelReply ask(const ModelRequest& request, std::stop_token stop) = 0;
};

// By the endpoint or the program that `access` names.
std::unique_ptr<Model> open_model(const ModelAccess& access);

}  // namespace proctor
