#pragma once
// The Model Context Protocol as a server of tools speaks it, in both of its eras at once: the older
// one opens with `initialize` and names a version there, the newer one has no opening and names a
// version in each request (`_meta`), which over HTTP must be equal to its headers.  Neither has a
// session here, so that a message is answered by itself.  Pure; any thread.
// Source: Model Context Protocol, revisions 2025-06-18, 2025-11-25 and 2026-07-28.
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "worker/tools/json_rpc.h"

namespace proctor {

inline constexpr std::string_view kMcpModern = "2026-07-28";

// What an HTTP request said beside its body; nullopt: nothing.
struct McpHeaders {
  std::optional<std::string> version;  // MCP-Protocol-Version
  std::optional<std::string> method;   // Mcp-Method
  std::optional<std::string> name;     // Mcp-Name
};

// Of a tool that exists; its arguments are judged by who runs it.
struct McpCall {
  Json id;
  bool modern = false;
  std::string tool;
  Json arguments = Json::object();
};
struct McpAnswer {
  int status = 200;  // over HTTP
  std::string body;  // empty: there is nothing to say (202)
};
// Nobody waits for that call any more.
struct McpCancelled {
  Json id;
};
using McpStep = std::variant<McpAnswer, McpCall, McpCancelled>;

// `headers` null: the message came as a line of a stream.
McpStep mcp_step(std::string_view message, const McpHeaders* headers,
                 std::string_view instructions);

// What a call came to, for the model that made it.  A refusal of ours is a result and no error of
// the protocol: models read those, and clients do not repeat them.
struct McpResult {
  std::string text;
  bool failed = false;
  Json structured;  // an object, or null
};
std::string mcp_result(const McpCall& call, const McpResult& result);

}  // namespace proctor
