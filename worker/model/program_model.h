#pragma once
// A program of the worker's operator as a model: it reads one JSON object on standard input
//   {"model", "task", "sample", "system", "user", "max_output_tokens", "timeout_ms"}
// and writes one on standard output
//   {"text": "...", "usage": {"input_tokens": 12, "output_tokens": 34}}    usage may be absent
// Exit code 75 says that it had no room and is to be asked later; any other but 0 that it failed.
// It runs on the worker itself, in no sandbox, with the worker's environment.
#include <memory>

#include "worker/model/model.h"

namespace proctor {

std::unique_ptr<Model> open_program_model(const ModelAccess& access);

}  // namespace proctor
