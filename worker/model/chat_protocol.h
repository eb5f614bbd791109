#pragma once
// What is said to a model and how its answer is read: OpenAI's chat completions, and the JSON of
// programs.  Pure; any thread.  Answers are hostile.
#include <string>
#include <string_view>

#include "worker/model/model.h"

namespace proctor {

// The body of POST <url>/chat/completions.  No temperature, as upstream (CVDP 8.1); the limit on
// its output is sent, because the call is reserved at it.
std::string chat_body(const ModelRequest& request, const std::string& output_limit);

struct HttpAnswer {
  long status = 0;
  std::string content_type;
  std::string body;
  std::chrono::milliseconds retry_after{0};
};
// The first choice's message.  A provider charges for no request that it refused (4xx, 503).
ModelReply read_chat_answer(HttpAnswer answer);

std::string program_request(const ModelRequest& request);
// Into `reply`, whose `raw` it leaves alone.
void read_program_answer(std::string_view out, ModelReply& reply);

}  // namespace proctor
