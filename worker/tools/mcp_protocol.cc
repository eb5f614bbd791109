#include "worker/tools/mcp_protocol.h"

#include <algorithm>
#include <array>
#include <optional>

#include "common/base/text.h"
#include "common/base/version.h"
#include "worker/tools/tool_list.h"

namespace proctor {
namespace {
constexpr std::size_t kRpcIdBytes = 256, kRpcMethodBytes = 200;
constexpr std::int64_t kIdMost = (std::int64_t{1} << 53) - 1;

bool is_id(const Json& id) {
  if (id.is_string()) return id.string().size() <= kRpcIdBytes;
  if (id.is_number_unsigned()) return id.get<std::uint64_t>() <= std::uint64_t{kIdMost};
  return id.is_number_integer() && -kIdMost <= id.get<std::int64_t>();
}

std::string to_line(const Json& value) {
  return value.dump(-1, Json::Utf8::kReplace);
}

struct RpcMessage {
  bool asks = false;  // for an answer
  Json id;
  std::string method;
  Json params = Json::object();
};

std::variant<RpcMessage, RpcRefusal> read_rpc(std::string_view text) {
  const auto json = parse_json(text, {.bytes_max = kRpcBytes});
  if (!json.ok()) return RpcRefusal{rpc::kParse, json.error().detail, nullptr, nullptr};
  RpcRefusal no{rpc::kRequest, "", nullptr, nullptr};
  const auto refuse = [&](const char* why) {
    no.why = why;
    return no;
  };
  if (json->is_array()) return refuse("a batch: send one message at a time");
  if (!json->is_object()) return refuse("a message is an object");
  const auto id = json->find("id"), method = json->find("method"), params = json->find("params");
  const auto end = json->end();
  if (id != end && is_id(*id)) no.id = *id;
  if (const auto version = json->find("jsonrpc"); version == end || *version != "2.0")
    return refuse("\"jsonrpc\" is not \"2.0\"");
  if (id != end && !is_id(*id)) return refuse("\"id\" is neither a text nor a whole number");
  const bool answers = json->contains("result") || json->contains("error");
  if (method == end) {
    if (!answers) return refuse("a message without \"method\"");
    return RpcMessage{};  // of somebody who was never asked
  }
  if (answers) return refuse("a request and an answer at once");
  if (!method->is_string()) return refuse("\"method\" is no text");
  RpcMessage out;
  out.method = method->get<std::string>();
  if (out.method.empty() || kRpcMethodBytes < out.method.size())
    return refuse("\"method\" is empty or too long");
  out.asks = id != end;
  out.id = no.id;
  if (params == end) return out;
  if (!params->is_object()) {
    no.code = rpc::kParams;
    return refuse("\"params\" is no object");
  }
  out.params = *params;
  return out;
}

std::string rpc_result(const Json& id, const Json& result) {
  return to_line({{"id", id}, {"jsonrpc", "2.0"}, {"result", result}});
}
}  // namespace

std::string rpc_error(const RpcRefusal& refusal) {
  Json error = {{"code", refusal.code}, {"message", refusal.why}};
  if (!refusal.data.is_null()) error["data"] = refusal.data;
  return to_line({{"error", std::move(error)}, {"id", refusal.id}, {"jsonrpc", "2.0"}});
}

namespace {
constexpr std::array<std::string_view, 2> kLegacy{"2025-11-25", "2025-06-18"};
constexpr const char* kMetaVersion = "io.modelcontextprotocol/protocolVersion";
constexpr const char* kMetaServer = "io.modelcontextprotocol/serverInfo";
constexpr int kUnknownVersion = -32022;
constexpr std::uint64_t kTtlMs = 3'600'000;

Json server_info() {
  return {{"name", "proctor"}, {"version", kVersion}};
}
Json capabilities() {
  return {{"tools", Json::object()}};
}

bool is_legacy(std::string_view version) {
  return std::find(kLegacy.begin(), kLegacy.end(), version) != kLegacy.end();
}

class Step {
 public:
  Step(const RpcMessage& message, std::string_view instructions)
      : m_(message), instructions_(instructions) {}

  McpStep answer() {
    const auto meta = m_.params.find("_meta");
    if (meta != m_.params.end()) {
      if (!meta->is_object()) return bad_params("\"_meta\" is no object");
      modern_ = meta->contains(kMetaVersion);
    }
    if (modern_)
      if (auto no = modern_lack(meta->at(kMetaVersion))) return *no;
    if (m_.method == "tools/list") return list();
    if (m_.method == "tools/call") return call();
    if (modern_ && m_.method == "server/discover") return discover();
    if (!modern_ && m_.method == "initialize") return initialize();
    if (!modern_ && m_.method == "ping") return result(Json::object());
    if (m_.method == "server/discover")
      return bad_params("server/discover names a version in \"_meta\"");
    return refused(rpc::kMethod, "no such method: " + printable(m_.method, 60));
  }

 private:
  std::string result(Json value) const {
    if (modern_) value["resultType"] = "complete";
    return rpc_result(m_.id, value);
  }
  std::string refused(int code, std::string why, Json data = nullptr) const {
    return rpc_error({code, std::move(why), m_.id, std::move(data)});
  }
  std::string bad_params(std::string why) const { return refused(rpc::kParams, std::move(why)); }

  std::optional<std::string> modern_lack(const Json& version) const {
    if (!version.is_string()) return bad_params("the version in \"_meta\" is no text");
    if (version == kMcpModern) return std::nullopt;
    const std::string said = printable(version.string(), 60);
    return refused(kUnknownVersion, "a version that is not spoken here: " + said,
                   {{"supported", Json::array({kMcpModern})}, {"requested", said}});
  }

  std::string initialize() const {
    const auto version = m_.params.find("protocolVersion");
    if (version == m_.params.end() || !version->is_string())
      return bad_params("\"protocolVersion\" is missing or no text");
    const auto& said = version->string();
    return result({{"protocolVersion", is_legacy(said) ? std::string_view(said) : kLegacy[0]},
                   {"capabilities", capabilities()},
                   {"serverInfo", server_info()},
                   {"instructions", instructions_}});
  }

  std::string discover() const {
    return result({{"supportedVersions", Json::array({kMcpModern})},
                   {"capabilities", capabilities()},
                   {"instructions", instructions_},
                   {"_meta", {{kMetaServer, server_info()}}},
                   {"ttlMs", kTtlMs},
                   {"cacheScope", "private"}});
  }

  std::string list() const {
    // All of them are one page, so nobody has the cursor of another.
    if (m_.params.contains("cursor")) return bad_params("there is no page of that cursor");
    Json out = {{"tools", tool_list_json()}};
    if (modern_) {
      out["ttlMs"] = kTtlMs;
      out["cacheScope"] = "private";
    }
    return result(std::move(out));
  }

  McpStep call() const {
    const auto name = m_.params.find("name"), arguments = m_.params.find("arguments");
    if (name == m_.params.end() || !name->is_string())
      return bad_params("\"name\" is missing or no text");
    const auto& tool = name->string();
    if (find_tool(tool) == nullptr)
      return bad_params("there is no tool " + printable(tool, 60) + ": see tools/list");
    McpCall out{m_.id, modern_, tool, Json::object()};
    if (arguments == m_.params.end()) return out;
    if (!arguments->is_object()) return bad_params("\"arguments\" is no object");
    out.arguments = *arguments;
    return out;
  }

  const RpcMessage& m_;
  const std::string_view instructions_;
  bool modern_ = false;
};
}  // namespace

McpStep mcp_step(std::string_view text, std::string_view instructions) {
  const auto read = read_rpc(text);
  if (const auto* no = std::get_if<RpcRefusal>(&read)) return rpc_error(*no);
  const auto& message = std::get<RpcMessage>(read);
  return message.asks ? Step(message, instructions).answer() : "";
}

std::string mcp_result(const McpCall& call, const McpResult& result) {
  Json text = {{"type", "text"}, {"text", result.text}};
  Json out = {{"isError", result.failed}};
  out["content"] = Json::array({std::move(text)});
  if (result.structured.is_object()) out["structuredContent"] = result.structured;
  if (call.modern) out["resultType"] = "complete";
  return rpc_result(call.id, out);
}
}  // namespace proctor
