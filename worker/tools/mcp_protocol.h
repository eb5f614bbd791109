#pragma once
// The Model Context Protocol as a server of tools speaks it, on JSON-RPC 2.0.  Pure; any thread.
#include <optional>
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
inline constexpr std::size_t kRpcIdBytes = 256, kRpcMethodBytes = 200;

namespace rpc {
inline constexpr int kParse = -32700, kRequest = -32600, kMethod = -32601, kParams = -32602;
}  // namespace rpc

struct RpcMessage {
  // The last: of somebody who was never asked.
  enum class Kind { kRequest, kNotification, kAnswer };
  Kind kind = Kind::kRequest;
  Json id;  // of a request
  std::string method;
  Json params = Json::object();
};

struct RpcRefusal {
  int code = rpc::kRequest;
  std::string why;
  Json id;    // null: it could not be read
  Json data;  // null: none
};

std::variant<RpcMessage, RpcRefusal> read_rpc(std::string_view text);

// Each in one line without its end.  Text that is no UTF-8 is replaced in it.
std::string rpc_result(const Json& id, const Json& result);
std::string rpc_error(const RpcRefusal& refusal);

// Both eras of the protocol at once: the older one opens with `initialize` and names a version
// there, the newer one has no opening and names a version in each request (`_meta`), which over
// HTTP must be equal to its headers.  Neither has a session here, so that a message is answered by
// itself.
// Source: Model Context Protocol, revisions 2025-06-18, 2025-11-25 and 2026-07-28.

inline constexpr std::string_view kMcpModern = "2026-07-28";

// The words of an HTTP request beside its body; nullopt: none.
struct McpHeaders {
  std::optional<std::string> version;  // MCP-Protocol-Version
  std::optional<std::string> method;   // Mcp-Method
  std::optional<std::string> name;     // Mcp-Name
};

// A call of a tool that exists; its arguments are judged by who runs it.
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

// A call that its sender waits for no more.
struct McpCancelled {
  Json id;
};
using McpStep = std::variant<McpAnswer, McpCall, McpCancelled>;

// `headers` null: the message came as a line of a stream.
McpStep mcp_step(std::string_view message, const McpHeaders* headers,
                 std::string_view instructions);

// The end of a call, for the model that made it.  A refusal of ours is a result and no error of the
// protocol: models read those, and clients do not repeat them.
struct McpResult {
  std::string text;
  bool failed = false;
  Json structured;  // an object, or null
};
std::string mcp_result(const McpCall& call, const McpResult& result);
}  // namespace proctor
