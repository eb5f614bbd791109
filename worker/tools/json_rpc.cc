#include "worker/tools/json_rpc.h"

namespace proctor {
namespace {

constexpr std::int64_t kIdMost = (std::int64_t{1} << 53) - 1;

bool is_id(const Json& id) {
  if (id.is_string()) return id.string().size() <= kRpcIdBytes;
  if (id.is_number_unsigned()) return id.get<std::uint64_t>() <= std::uint64_t{kIdMost};
  return id.is_number_integer() && -kIdMost <= id.get<std::int64_t>();
}

std::string to_line(const Json& value) {
  return value.dump(-1, Json::Utf8::kReplace);
}

}  // namespace

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
    return RpcMessage{RpcMessage::Kind::kAnswer, no.id, "", Json::object()};
  }
  if (answers) return refuse("a request and an answer at once");
  if (!method->is_string()) return refuse("\"method\" is no text");
  RpcMessage out;
  out.method = method->get<std::string>();
  if (out.method.empty() || kRpcMethodBytes < out.method.size())
    return refuse("\"method\" is empty or too long");
  out.kind = id == end ? RpcMessage::Kind::kNotification : RpcMessage::Kind::kRequest;
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

std::string rpc_error(const RpcRefusal& refusal) {
  Json error = {{"code", refusal.code}, {"message", refusal.why}};
  if (!refusal.data.is_null()) error["data"] = refusal.data;
  return to_line({{"error", std::move(error)}, {"id", refusal.id}, {"jsonrpc", "2.0"}});
}

}  // namespace proctor
