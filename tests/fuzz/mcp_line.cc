// What an agent says to the server of tools: every message is answered in one line that is JSON,
// and a call that is passed on is one of a tool that exists.
#include "common/base/json.h"
#include "tests/fuzz/fuzz.h"
#include "worker/tools/mcp_protocol.h"
#include "worker/tools/tool_list.h"

namespace proctor::fuzz::mcp_line {

void check_line(const std::string& line) {
  PROCTOR_ASSERT(line.find('\n') == std::string::npos);
  const auto json = parse_json(line, {.bytes_max = 2 * kRpcBytes, .depth_max = 64});
  PROCTOR_ASSERT(json.ok() && json->at("jsonrpc") == "2.0");
  PROCTOR_ASSERT(json->contains("id") && json->contains("result") != json->contains("error"));
}

void target(std::string_view bytes) {
  const McpStep step = mcp_step(bytes, "instructions");
  if (const auto* answer = std::get_if<std::string>(&step); answer != nullptr && !answer->empty())
    check_line(*answer);
  if (const auto* call = std::get_if<McpCall>(&step)) {
    PROCTOR_ASSERT(find_tool(call->tool) != nullptr && call->arguments.is_object());
    check_line(mcp_result(*call, {std::string(bytes), true, nullptr}));
  }
}

}  // namespace proctor::fuzz::mcp_line
