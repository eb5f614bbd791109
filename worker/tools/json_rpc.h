#pragma once
// One message of JSON-RPC 2.0 as MCP uses it: an object, no batches, parameters by name, an id that
// is a text or a whole number.  Strict: what is none is refused with the protocol's own code, never
// repaired.  Pure; any thread.
// Source: JSON-RPC 2.0 specification, sections 4 and 5.
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "common/base/json.h"

namespace proctor {

// A file of 1 MiB in which every byte is escaped is 6 MiB.
inline constexpr std::size_t kRpcBytes = std::size_t{8} << 20;
inline constexpr std::size_t kRpcIdBytes = 256, kRpcMethodBytes = 200;

namespace rpc {
inline constexpr int kParse = -32700, kRequest = -32600, kMethod = -32601, kParams = -32602,
                     kInternal = -32603;
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

}  // namespace proctor
