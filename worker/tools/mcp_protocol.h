#pragma once
// The Model Context Protocol as a server of tools speaks it, on JSON-RPC 2.0.  Pure; any thread.
#include <string>
#include <string_view>
#include <variant>

#include "common/base/json.h"

namespace proctor {
// One message of JSON-RPC 2.0 as MCP uses it: an object, no batches, parameters by name, an id that
// is a text or a whole number.  Strict: what is none is refused with the protocol's own code, never
// repaired.
// Source: JSON-RPC 2.0 specification, sections 4 and 5.

// A file of 1 MiB in which every byte is escaped is 6 MiB.
inline constexpr std::size_t kRpcBytes = std::size_t{8} << 20;

namespace rpc {
inline constexpr int kParse = -32700, kRequest = -32600, kMethod = -32601, kParams = -32602;
}  // namespace rpc

struct RpcRefusal {
  int code = rpc::kRequest;
  std::string why;
  Json id;    // null: it could not be read
  Json data;  // null: none
};

// In one line without its end.  Text that is no UTF-8 is replaced in it.
std::string rpc_error(const RpcRefusal& refusal);

// Both eras of the protocol at once: the older one opens with `initialize` and names a version
// there, the newer one has no opening and names a version in each request (`_meta`).  Neither has a
// session here, so that a message is answered by itself.
// Source: Model Context Protocol, revisions 2025-06-18, 2025-11-25 and 2026-07-28.

inline constexpr std::string_view kMcpModern = "2026-07-28";

// A call of a tool that exists; its arguments are judged by who runs it.
struct McpCall {
  Json id;
  bool modern = false;
  std::string tool;
  Json arguments = Json::object();
};
// An answer, or empty: there is nothing to say.
using McpStep = std::variant<std::string, McpCall>;

McpStep mcp_step(std::string_view message, std::string_view instructions);

// The end of a call, for the model that made it.  A refusal of ours is a result and no error of the
// protocol: models read those, and clients do not repeat them.
struct McpResult {
  std::string text;
  bool failed = false;
  Json structured;  // an object, or null
};
std::string mcp_result(const McpCall& call, const McpResult& result);
}  // namespace proctor
