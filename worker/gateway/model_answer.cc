#include "worker/gateway/model_answer.h"

#include <algorithm>
#include <utility>

#include "common/base/json.h"
#include "worker/gateway/json_spans.h"

namespace proctor {
void SseScan::end_line(std::vector<SseEvent>& out) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  std::string_view line = line_;
  if (std::exchange(first_, false) && line.starts_with(kMark)) line.remove_prefix(kMark.size());
  if (line.empty()) {
    out.push_back(std::exchange(event_, {}));
    has_data_ = false;
  } else if (const std::size_t colon = line.find(':'); colon != 0) {
    const std::string_view field = line.substr(0, colon);
    std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (field == "event") event_.name = value;
    if (field == "data") {
      if (std::exchange(has_data_, true)) event_.data += '\n';
      event_.data += value;
    }
  }
  line_.clear();
}

Result<std::vector<SseEvent>> SseScan::feed(std::string_view bytes) {
  std::vector<SseEvent> out;
  for (const char c : bytes) {
    if (std::exchange(after_cr_, false) && c == '\n') {
      // Of the event that the carriage return has ended, where that is still here.
      (event_.bytes.empty() && !out.empty() ? out.back() : event_).bytes += c;
      continue;
    }
    event_.bytes += c;
    if (kEventBytes < event_.bytes.size())
      return Error{Errc::kExhausted, "an event of more than 16 MiB"};
    if (c == '\n' || c == '\r') {
      after_cr_ = c == '\r';
      end_line(out);
    } else {
      line_ += c;
    }
  }
  return out;
}

namespace {
constexpr std::uint64_t kCountMost = 1'000'000'000;  // more is no count of one call
constexpr std::size_t kRawBytes = 4096;

// The counts of one object; a member that is no count makes all of it unusable.
class Counts {
 public:
  explicit Counts(const Json& object) : object_(object) {}
  // `needed`: must be there.
  std::uint64_t get(const char* key, bool needed = false) {
    const auto it = object_.find(key);
    if (it == object_.end() || it->is_null()) {
      usable_ = usable_ && !needed;
      return 0;
    }
    if (!it->is_number_unsigned() || kCountMost < it->get<std::uint64_t>()) {
      usable_ = false;
      return 0;
    }
    return it->get<std::uint64_t>();
  }
  bool has(const char* key) const {
    const auto it = object_.find(key);
    return it != object_.end() && !it->is_null();
  }
  bool usable() const { return usable_; }
  // An object in it; an empty one where there is none.
  Counts of(const char* key) const {
    static const Json kNothing = Json::object();
    const auto it = object_.find(key);
    return Counts(it != object_.end() && it->is_object() ? *it : kNothing);
  }

 private:
  const Json& object_;
  bool usable_ = true;
};

std::optional<Amount> openai_usage(const Json& usage, const char* input, const char* output,
                                   bool long_cache) {
  Counts u(usage);
  Amount a;
  a.input_tokens = u.get(input, true);
  a.output_tokens = output == nullptr ? 0 : u.get(output, true);
  Counts in = u.of((std::string(input) + "_details").c_str());
  a.cache_read = in.get("cached_tokens");
  (long_cache ? a.cache_write_long : a.cache_write) = in.get("cache_write_tokens");
  std::optional<Counts> out;
  if (output != nullptr) {
    out.emplace(u.of((std::string(output) + "_details").c_str()));
    a.reasoning = out->get("reasoning_tokens");
  }
  if (!u.usable() || !in.usable() || (out && !out->usable())) return std::nullopt;
  return a;
}

std::optional<Amount> anthropic_usage(const Json& usage) {
  Counts u(usage);
  Amount a;
  const std::uint64_t plain = u.get("input_tokens", true);
  a.output_tokens = u.get("output_tokens", true);
  a.cache_read = u.get("cache_read_input_tokens");
  const std::uint64_t written = u.get("cache_creation_input_tokens");
  Counts creation = u.of("cache_creation");
  a.cache_write_long = creation.get("ephemeral_1h_input_tokens");
  a.cache_write = creation.has("ephemeral_5m_input_tokens")
                      ? creation.get("ephemeral_5m_input_tokens")
                      : written - std::min(written, a.cache_write_long);
  Counts details = u.of("output_tokens_details");
  a.reasoning = details.get("thinking_tokens");
  a.input_tokens = plain + a.cache_read + a.cache_write + a.cache_write_long;
  // A whole that is larger than its parts is the whole.
  const std::uint64_t parts = a.cache_write + a.cache_write_long;
  if (parts < written) {
    a.cache_write += written - parts;
    a.input_tokens += written - parts;
  }
  if (!u.usable() || !creation.usable() || !details.usable()) return std::nullopt;
  return a;
}

// The bytes of a member of an object, by its path; empty: it is not there.
std::string_view member_of(const JsonText& text, JsonSpan object, std::string_view key,
                           JsonSpan* at = nullptr) {
  if (text.kind(object) != '{') return {};
  const auto members = text.members(object);
  if (!members.ok()) return {};
  const JsonMember* m = find_member(*members, key);
  if (m == nullptr) return {};
  if (at != nullptr) *at = m->value;
  return text.bytes(m->value);
}

std::string word_in(const JsonText& text, JsonSpan object, std::string_view key) {
  JsonSpan at;
  if (member_of(text, object, key, &at).empty()) return "";
  return text.text(at).value_or("").substr(0, 200);
}

std::string first_finish(const JsonText& text, JsonSpan root) {
  JsonSpan choices;
  if (member_of(text, root, "choices", &choices).empty() || text.kind(choices) != '[') return "";
  const auto elements = text.elements(choices);
  if (!elements.ok() || elements->empty()) return "";
  return word_in(text, elements->front(), "finish_reason");
}

// Is it a list that holds something?
bool holds(std::string_view member) {
  const std::size_t first = member.find_first_not_of(" \t\r\n", 1);
  return member.starts_with('[') && first + 1 < member.size();
}

// A usage of nothing is believed only where nothing came.
void doubt_nothing(std::optional<Amount>& usage, bool has_content) {
  if (usage && has_content && usage->input_tokens + usage->output_tokens == 0) usage.reset();
}
}  // namespace

std::optional<Amount> read_usage(ModelApi api, std::string_view usage, bool long_cache) {
  const Result<Json> json = parse_json(usage);
  if (!json.ok() || !json->is_object()) return std::nullopt;
  switch (api) {
    case ModelApi::kChat:
    case ModelApi::kCompletions:
      return openai_usage(*json, "prompt_tokens", "completion_tokens", long_cache);
    case ModelApi::kEmbeddings:
      return openai_usage(*json, "prompt_tokens", nullptr, long_cache);
    case ModelApi::kResponses:
      return openai_usage(*json, "input_tokens", "output_tokens", long_cache);
    case ModelApi::kMessages:
      return anthropic_usage(*json);
    case ModelApi::kCountTokens:
      return Amount{};
  }
  return std::nullopt;
}

AnswerFacts read_answer(ModelApi api, std::string_view body, bool long_cache) {
  AnswerFacts out;
  const Result<JsonText> text = JsonText::read(body);
  if (!text.ok() || text->kind(text->root()) != '{') {
    out.fault = body.empty() ? "it is empty" : "it is no JSON object";
    return out;
  }
  const JsonSpan root = text->root();
  out.id = word_in(*text, root, "id");
  out.finish = api == ModelApi::kMessages    ? word_in(*text, root, "stop_reason")
               : api == ModelApi::kResponses ? word_in(*text, root, "status")
                                             : first_finish(*text, root);
  const std::string_view usage = member_of(*text, root, "usage");
  out.raw_usage = usage.substr(0, kRawBytes);
  out.usage = read_usage(api, usage, long_cache);
  const char* const content = api == ModelApi::kMessages     ? "content"
                              : api == ModelApi::kResponses  ? "output"
                              : api == ModelApi::kEmbeddings ? "data"
                                                             : "choices";
  out.has_content = holds(member_of(*text, root, content));
  const bool says_nothing = !out.has_content && out.raw_usage.empty() && out.finish.empty();
  if (says_nothing && api != ModelApi::kCountTokens) out.fault = "it has neither content nor usage";
  JsonSpan error;
  if (const auto said = member_of(*text, root, "error", &error);
      !said.empty() && said != "null" && !out.has_content && !out.usage) {
    const std::string words = word_in(*text, error, "message");
    out.fault = "it is an error" + (words.empty() ? std::string() : ": " + words);
  }
  doubt_nothing(out.usage, out.has_content);
  return out;
}

void StreamFacts::on(const SseEvent& event) {
  if (event.data.empty() || ended_) return;
  if (api_ == ModelApi::kMessages) {
    on_messages(event);
  } else if (api_ == ModelApi::kResponses) {
    on_responses(event);
  } else {
    on_chat(event.data);
  }
  doubt_nothing(facts_.usage, facts_.has_content);
  doubt_nothing(begun_, facts_.has_content);
}

void StreamFacts::on_chat(std::string_view data) {
  if (data == "[DONE]") {
    ended_ = true;
    return;
  }
  const Result<JsonText> text = JsonText::read(data);
  if (!text.ok() || text->kind(text->root()) != '{') return;
  if (!member_of(*text, text->root(), "error").empty()) failed_ = ended_ = true;
  if (facts_.id.empty()) facts_.id = word_in(*text, text->root(), "id");
  if (const std::string finish = first_finish(*text, text->root()); !finish.empty())
    facts_.finish = finish;
  if (holds(member_of(*text, text->root(), "choices"))) facts_.has_content = true;
  const std::string_view usage = member_of(*text, text->root(), "usage");
  if (usage.empty() || usage == "null") return;
  facts_.raw_usage = usage.substr(0, kRawBytes);
  facts_.usage = read_usage(api_, usage, long_cache_);
}

void StreamFacts::on_responses(const SseEvent& event) {
  const Result<JsonText> text = JsonText::read(event.data);
  if (!text.ok() || text->kind(text->root()) != '{') return;
  const std::string type = word_in(*text, text->root(), "type");
  if (type == "error") failed_ = ended_ = true;
  if (type.starts_with("response.output") || type.ends_with(".delta")) facts_.has_content = true;
  JsonSpan response;
  if (member_of(*text, text->root(), "response", &response).empty()) return;
  if (facts_.id.empty()) facts_.id = word_in(*text, response, "id");
  if (type != "response.completed" && type != "response.incomplete" && type != "response.failed")
    return;
  ended_ = true;
  facts_.finish = type.substr(type.find('.') + 1);
  if (holds(member_of(*text, response, "output"))) facts_.has_content = true;
  const std::string_view usage = member_of(*text, response, "usage");
  facts_.raw_usage = usage.substr(0, kRawBytes);
  facts_.usage = read_usage(api_, usage, long_cache_);
  failed_ = type == "response.failed" && !facts_.usage;
}

void StreamFacts::on_messages(const SseEvent& event) {
  const Result<JsonText> text = JsonText::read(event.data);
  if (!text.ok() || text->kind(text->root()) != '{') return;
  const std::string type = word_in(*text, text->root(), "type");
  if (type == "message_stop") ended_ = true;
  if (type == "error") failed_ = ended_ = true;
  if (type.starts_with("content_block_")) facts_.has_content = true;
  if (type == "message_start") {
    JsonSpan message;
    if (member_of(*text, text->root(), "message", &message).empty()) return;
    facts_.id = word_in(*text, message, "id");
    first_usage_ = member_of(*text, message, "usage");
    begun_ = read_usage(api_, first_usage_, long_cache_);
  }
  if (type != "message_delta") return;
  JsonSpan delta;
  if (!member_of(*text, text->root(), "delta", &delta).empty())
    facts_.finish = word_in(*text, delta, "stop_reason");
  // Cumulative; what is missing stands in message_start.
  const Result<Json> first = parse_json(first_usage_);
  const Result<Json> last = parse_json(member_of(*text, text->root(), "usage"));
  if (!last.ok() || !last->is_object()) return;
  Json whole = first.ok() && first->is_object() ? *first : Json::object();
  for (const auto& [key, value] : last->items())
    if (!value.is_null()) whole[key] = value;
  const std::string usage = whole.dump(-1, Json::Utf8::kReplace, true);
  facts_.raw_usage = usage.substr(0, kRawBytes);
  facts_.usage = read_usage(api_, usage, long_cache_);
}

bool StreamFacts::is_bare_usage(const SseEvent& event) {
  const Result<JsonText> text = JsonText::read(event.data);
  if (!text.ok() || text->kind(text->root()) != '{') return false;
  JsonSpan choices;
  if (member_of(*text, text->root(), "choices", &choices).empty()) return false;
  if (text->kind(choices) != '[') return false;
  const auto elements = text->elements(choices);
  if (!elements.ok() || !elements->empty()) return false;
  const std::string_view usage = member_of(*text, text->root(), "usage");
  return !usage.empty() && usage != "null";
}

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
