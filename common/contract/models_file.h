#pragma once
// The worker's models file: how each model is reached from here.  The campaign says which model and
// what of it; where that is, which program runs and where the key lies is the operator's word.
//
//   {"models": {
//     "gpt-4o": {"url": "https://api.openai.com/v1", "key_variable": "OPENAI_API_KEY"},
//     "local":  {"url": "http://127.0.0.1:8000/v1", "send_as": "qwen", "key_file": "/etc/key",
//                "output_limit": "max_tokens", "backoff_ms": 500},
//     "mine":   {"program": ["/opt/ask", "--fast"]}}}
//
// Keys are never in it: it names the variable or the file.  Pure but for load; any thread.
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"

namespace proctor {

struct ModelAccess {
  std::string url;                                     // without /chat/completions; or:
  std::vector<std::string> program;                    // reads a JSON request, writes a JSON answer
  std::string send_as;                                 // the name the provider knows; empty: ours
  std::string key_variable, key_file;                  // at most one
  std::string output_limit = "max_completion_tokens";  // what the endpoint calls it
  std::chrono::milliseconds backoff{1'000};            // first wait between two calls; doubles
};

using ModelsFile = std::map<std::string, ModelAccess>;

// kInvalid with the member that is wrong.  A key goes over plain HTTP to this machine only.
Result<ModelsFile> parse_models(std::string_view text);
Result<ModelsFile> load_models(const fs::path& file);

}  // namespace proctor
