#pragma once
// A model that is asked single questions: what is asked, how its answer is read, how long to wait
// before the next call, and a program in a model's place.  Pure but for ask_program(); any thread.
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/contract/models_file.h"
#include "common/trace/model_calls.h"
#include "worker/gateway/own_client.h"

namespace proctor {
// How long to wait between two calls of a model.
// Source: CVDP 8.3 (attempts), RFC 9110 10.2.3 (Retry-After).

// By which a single-shot method says that its provider had no room, as programs do (sysexits.h).
inline constexpr int kModelBusyExit = 75;
inline constexpr std::chrono::milliseconds kModelWaitMost{60'000};

// Doubles from `backoff`, at most kModelWaitMost; a provider that names a longer time is heeded,
// up to the same.  `failures`: calls in a row that were not answered, at least 1.
std::chrono::milliseconds wait_before_next(std::uint32_t failures,
                                           std::chrono::milliseconds backoff,
                                           std::chrono::milliseconds retry_after);

// A single question to a model, and how its answer is read.  Answers are hostile: any size, any
// bytes, or nothing.

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

// The body of POST /v1/chat/completions.  Temperature is not in it (CVDP 8.1); the gateway adds the
// limit on its output, at which the call is reserved.
std::string chat_body(const ModelRequest& request);
// The first choice's message.
ModelReply read_chat_answer(const OwnReply& answer);

// A program of the worker's operator as a model: it reads one JSON object on standard input
//   {"model", "task", "sample", "system", "user", "max_output_tokens", "timeout_ms"}
// and writes one on standard output
//   {"text": "...", "usage": {"input_tokens": 12, "output_tokens": 34}}    usage may be absent
// Exit code 75 says that it had no room and is to be asked later; any other but 0 that it failed.
// It runs on the worker itself, in no sandbox, with the worker's environment.

struct ProgramTask {
  std::string task;  // which problem
  std::uint32_t sample = 1;
};

// Answers a body as chat_body() makes it, as a provider would; what is no answer has the status 0
// and says why in place of one.  `stop` is asked a few times a second.  Blocking.
// kUnavailable: the program never began.
Result<CassetteCall> ask_program(const ModelAccess& access, const ProgramTask& task,
                                 std::string_view body, const std::function<bool()>& stop);
}  // namespace proctor
