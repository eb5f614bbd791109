#include "worker/gateway/tool_calls.h"

#include <optional>

#include "worker/gateway/json_spans.h"

namespace proctor {
namespace {

// A value of a JSON text; nothing where the way to it is not there.
class At {
 public:
  At(const JsonText& text, std::optional<JsonSpan> span) : text_(text), span_(span) {}
  At operator[](std::string_view key) const {
    if (!span_ || text_.kind(*span_) != '{') return {text_, std::nullopt};
    const auto members = text_.members(*span_);
    const JsonMember* m = members.ok() ? find_member(*members, key) : nullptr;
    return {text_, m == nullptr ? std::nullopt : std::optional(m->value)};
  }
  std::vector<At> each() const {
    std::vector<At> out;
    if (!span_ || text_.kind(*span_) != '[') return out;
    const auto elements = text_.elements(*span_);
    if (elements.ok())
      for (const JsonSpan& e : *elements) out.push_back({text_, e});
    return out;
  }
  std::string text() const { return span_ ? text_.text(*span_).value_or("") : ""; }
  // A string's own text, else the JSON of it.
  std::string said() const {
    if (!span_) return "";
    return text_.kind(*span_) == '"' ? text() : std::string(text_.bytes(*span_));
  }
  std::uint64_t count() const { return span_ ? text_.count(*span_).value_or(0) : 0; }

 private:
  const JsonText& text_;
  std::optional<JsonSpan> span_;
};

void add(std::vector<ToolCall>& out, ToolCall call) {
  if (out.size() < kToolCallsMax && !(call.id.empty() && call.name.empty()))
    out.push_back(std::move(call));
}

// {"type":"function_call","call_id":...,"name":...,"arguments":...} and its kin.
void add_item(std::vector<ToolCall>& out, const At& item) {
  if (!item["type"].text().ends_with("_call")) return;
  ToolCall call{item["call_id"].text(), item["name"].text(), item["arguments"].said()};
  if (call.name.empty()) call.name = item["type"].text();
  for (const char* member : {"input", "action"})
    if (call.arguments.empty()) call.arguments = item[member].said();
  add(out, std::move(call));
}

}  // namespace

std::vector<ToolCall> tool_calls_in(ModelApi api, std::string_view body) {
  std::vector<ToolCall> out;
  const auto read = JsonText::read(body);
  if (!read.ok()) return out;
  const At root(*read, read->root());
  if (api == ModelApi::kChat)
    for (const At& choice : root["choices"].each())
      for (const At& call : choice["message"]["tool_calls"].each())
        add(out, {call["id"].text(), call["function"]["name"].text(),
                  call["function"]["arguments"].said()});
  if (api == ModelApi::kResponses)
    for (const At& item : root["output"].each()) add_item(out, item);
  if (api == ModelApi::kMessages)
    for (const At& block : root["content"].each())
      if (block["type"].text() == "tool_use")
        add(out, {block["id"].text(), block["name"].text(), block["input"].said()});
  return out;
}

void StreamToolCalls::on(const SseEvent& event) {
  // Most events are texts: looking costs less than reading.
  if (api_ == ModelApi::kChat && event.data.find("\"tool_calls\"") != std::string::npos)
    return on_chat(event.data);
  if (api_ == ModelApi::kMessages && (event.data.find("\"tool_use\"") != std::string::npos ||
                                      event.data.find("\"input_json_delta\"") != std::string::npos))
    return on_messages(event.data);
  if (api_ != ModelApi::kResponses ||
      event.data.find("\"response.output_item.done\"") == std::string::npos)
    return;
  const auto read = JsonText::read(event.data);
  if (read.ok()) add_item(whole_, At(*read, read->root())["item"]);
}

void StreamToolCalls::append(ToolCall& call, const std::string& more) {
  constexpr std::size_t kMost = std::size_t{16} << 20;
  if (kMost < bytes_ + more.size()) return;
  bytes_ += more.size();
  call.arguments += more;
}

void StreamToolCalls::on_chat(std::string_view data) {
  const auto read = JsonText::read(data);
  if (!read.ok()) return;
  for (const At& choice : At(*read, read->root())["choices"].each())
    for (const At& part : choice["delta"]["tool_calls"].each()) {
      const std::uint64_t index = part["index"].count();
      if (!open_.contains(index) && kToolCallsMax <= open_.size()) return;
      ToolCall& call = open_[index];
      if (std::string id = part["id"].text(); !id.empty()) call.id = std::move(id);
      if (call.name.empty()) call.name = part["function"]["name"].text();
      append(call, part["function"]["arguments"].text());
    }
}

void StreamToolCalls::on_messages(std::string_view data) {
  const auto read = JsonText::read(data);
  if (!read.ok()) return;
  const At root(*read, read->root());
  const std::uint64_t index = root["index"].count();
  const At block = root["content_block"];
  if (block["type"].text() == "tool_use") {
    if (kToolCallsMax <= open_.size()) return;
    open_[index] = {block["id"].text(), block["name"].text(), ""};
  } else if (const auto it = open_.find(index); it != open_.end()) {
    append(it->second, root["delta"]["partial_json"].text());
  }
}

std::vector<ToolCall> StreamToolCalls::calls() const {
  std::vector<ToolCall> out = whole_;
  for (const auto& [index, call] : open_) add(out, call);
  return out;
}

}  // namespace proctor
