#pragma once
// A single question to a model, and how its answer is read.  Answers are hostile: any size, any
// bytes, or nothing.  Pure; any thread.
#include <chrono>
#include <cstdint>
#include <string>

#include "worker/gateway/own_client.h"

namespace proctor {

// More than this of an answer is refused, whatever it holds.
inline constexpr std::size_t kModelReplyBytes = std::size_t{16} << 20;

struct ModelRequest {
  std::string model;  // as the run's gateway knows it
  std::string system, user;
};

struct ModelReply {
  enum class End {
    kAnswered,
    kBusy,        // no room now: ask later
    kFailed,      // may heal
    kUnreadable,  // an answer, of a size that is none
    kRefused,     // will never be answered as it is asked
    kNoAccess,    // nothing will be: the operator's key, account or address
    kNotNow,      // the gateway's word: later
    kNever,       // the gateway's word: nothing is granted any more
  };
  End end = End::kFailed;
  std::string text{};  // kAnswered
  // For every end but kAnswered; safe to print.  `cause`: likewise, without what differs between
  // two times that it fails in the same way; empty: as why.
  std::string why{}, cause{};
};

// The body of POST /v1/chat/completions.  No temperature (CVDP 8.1); the gateway adds
// the limit on its output, at which the call is reserved.
std::string chat_body(const ModelRequest& request);
// The first choice's message.
ModelReply read_chat_answer(const OwnReply& answer);

}  // namespace proctor
