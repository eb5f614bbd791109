#pragma once
// A program of the worker's operator as a model: it reads one JSON object on standard input
//   {"model", "task", "sample", "system", "user", "max_output_tokens", "timeout_ms"}
// and writes one on standard output
//   {"text": "...", "usage": {"input_tokens": 12, "output_tokens": 34}}    usage may be absent
// Exit code 75 says that it had no room and is to be asked later; any other but 0 that it failed.
// It runs on the worker itself, in no sandbox, with the worker's environment.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/contract/models_file.h"
#include "common/trace/model_calls.h"

namespace proctor {

struct ProgramTask {
  std::string task;  // which problem
  std::uint32_t sample = 1;
};

// Answers a body as chat_body() makes it, as a provider would; what is no answer has the status 0
// and says why in place of one.  `stop` is asked a few times a second.  Blocking; any thread.
// kUnavailable: the program never began.
Result<CassetteCall> ask_program(const ModelAccess& access, const ProgramTask& task,
                                 std::string_view body, const std::function<bool()>& stop);

}  // namespace proctor
