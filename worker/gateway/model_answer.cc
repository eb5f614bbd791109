#include "worker/gateway/model_answer.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "common/base/json.h"
#include "common/base/parse.h"
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
constexpr std::size_t kRawBytes = 4096, kWordBytes = 200;

// Where the answers of an API say what is asked of all of them.
struct AnswerPaths {
  std::string_view finish, content;
  std::string_view input, output;  // in its usage; empty: it has none
};

constexpr AnswerPaths paths_of(ModelApi api) {
  constexpr std::string_view kFinish = "choices.0.finish_reason";
  switch (api) {
    case ModelApi::kChat:
    case ModelApi::kCompletions:
      return {kFinish, "choices", "prompt_tokens", "completion_tokens"};
    case ModelApi::kEmbeddings:
      return {kFinish, "data", "prompt_tokens", ""};
    case ModelApi::kResponses:
      return {"status", "output", "input_tokens", "output_tokens"};
    case ModelApi::kMessages:
      return {"stop_reason", "content", "input_tokens", "output_tokens"};
    case ModelApi::kCountTokens:
      break;
  }
  return {kFinish, "choices", "", ""};
}

// The counts of one usage; a member that is no count makes all of it unusable.
class Counts {
 public:
  explicit Counts(const Json& usage) : usage_(usage) {}
  // By names with a dot between them; nullopt: it is not there.
  std::optional<std::uint64_t> find(std::string_view path) {
    const Json* at = &usage_;
    while (!path.empty()) {
      const auto it = at->find(take_until(path, '.'));
      if (it == at->end() || it->is_null()) return std::nullopt;
      at = &*it;
    }
    if (at->is_number_unsigned() && at->get<std::uint64_t>() <= kCountMost)
      return at->get<std::uint64_t>();
    usable_ = false;
    return std::nullopt;
  }
  std::uint64_t get(std::string_view path) { return find(path).value_or(0); }
  std::uint64_t need(std::string_view path) {
    const auto count = find(path);
    usable_ = usable_ && count;
    return count.value_or(0);
  }
  std::optional<Amount> amount(const Amount& a) const {
    return usable_ ? std::optional(a) : std::nullopt;
  }

 private:
  const Json& usage_;
  bool usable_ = true;
};

std::optional<Amount> openai_usage(Counts u, const AnswerPaths& paths, bool long_cache) {
  const std::string input(paths.input), output(paths.output);
  Amount a;
  a.input_tokens = u.need(input);
  a.cache_read = u.get(input + "_details.cached_tokens");
  (long_cache ? a.cache_write_long : a.cache_write) = u.get(input + "_details.cache_write_tokens");
  if (output.empty()) return u.amount(a);
  a.output_tokens = u.need(output);
  a.reasoning = u.get(output + "_details.reasoning_tokens");
  return u.amount(a);
}

std::optional<Amount> anthropic_usage(Counts u, const AnswerPaths& paths) {
  Amount a;
  const std::uint64_t plain = u.need(paths.input);
  a.output_tokens = u.need(paths.output);
  a.cache_read = u.get("cache_read_input_tokens");
  const std::uint64_t written = u.get("cache_creation_input_tokens");
  a.cache_write_long = u.get("cache_creation.ephemeral_1h_input_tokens");
  a.cache_write = u.find("cache_creation.ephemeral_5m_input_tokens")
                      .value_or(written - std::min(written, a.cache_write_long));
  a.reasoning = u.get("output_tokens_details.thinking_tokens");
  // A whole that is larger than its parts is the whole.
  const std::uint64_t parts = a.cache_write + a.cache_write_long;
  a.cache_write += written - std::min(written, parts);
  a.input_tokens = plain + a.cache_read + a.cache_write + a.cache_write_long;
  return u.amount(a);
}

std::string word(const JsonAt& at) {
  return at.text().substr(0, kWordBytes);
}

// Is it a list that holds something?
bool holds(const JsonAt& at) {
  const std::string_view list = at.bytes();
  return list.starts_with('[') && list.find_first_not_of(" \t\r\n", 1) + 1 < list.size();
}

// A usage of nothing is believed only where nothing came.
void doubt_nothing(std::optional<Amount>& usage, bool has_content) {
  if (usage && has_content && usage->input_tokens + usage->output_tokens == 0) usage.reset();
}
}  // namespace

std::optional<Amount> read_usage(ModelApi api, std::string_view usage, bool long_cache) {
  const Result<Json> json = parse_json(usage);
  if (!json.ok() || !json->is_object()) return std::nullopt;
  if (api == ModelApi::kCountTokens) return Amount{};
  if (api == ModelApi::kMessages) return anthropic_usage(Counts(*json), paths_of(api));
  return openai_usage(Counts(*json), paths_of(api), long_cache);
}

AnswerFacts read_answer(ModelApi api, std::string_view body, bool long_cache) {
  AnswerFacts out;
  const Result<JsonText> text = JsonText::read(body);
  if (!text.ok() || text->kind(text->root()) != '{') {
    out.fault = body.empty() ? "it is empty" : "it is no JSON object";
    return out;
  }
  const JsonAt root(*text), error = root["error"];
  const AnswerPaths paths = paths_of(api);
  out.id = word(root["id"]);
  out.finish = word(root[paths.finish]);
  const std::string_view usage = root["usage"].bytes();
  out.raw_usage = usage.substr(0, kRawBytes);
  out.usage = read_usage(api, usage, long_cache);
  out.has_content = holds(root[paths.content]);
  const bool says_nothing = !out.has_content && out.raw_usage.empty() && out.finish.empty();
  if (says_nothing && api != ModelApi::kCountTokens) out.fault = "it has neither content nor usage";
  if (error && error.bytes() != "null" && !out.has_content && !out.usage) {
    const std::string words = word(error["message"]);
    out.fault = "it is an error" + (words.empty() ? std::string() : ": " + words);
  }
  doubt_nothing(out.usage, out.has_content);
  return out;
}

void StreamFacts::on(const SseEvent& event) {
  if (event.data.empty() || ended_) return;
  const bool chat = api_ != ModelApi::kMessages && api_ != ModelApi::kResponses;
  if (chat && event.data == "[DONE]") ended_ = true;
  const Result<JsonText> text = JsonText::read(event.data);
  if (!text.ok()) return;
  const JsonAt root(*text);
  if (chat)
    on_chat(root);
  else if (api_ == ModelApi::kMessages)
    on_messages(root);
  else
    on_responses(root);
  doubt_nothing(facts_.usage, facts_.has_content);
  doubt_nothing(begun_, facts_.has_content);
}

void StreamFacts::take_usage(std::string_view usage) {
  facts_.raw_usage = usage.substr(0, kRawBytes);
  facts_.usage = read_usage(api_, usage, long_cache_);
}

void StreamFacts::on_chat(const JsonAt& event) {
  if (event["error"]) failed_ = ended_ = true;
  if (facts_.id.empty()) facts_.id = word(event["id"]);
  if (std::string finish = word(event[paths_of(api_).finish]); !finish.empty())
    facts_.finish = std::move(finish);
  if (holds(event["choices"])) facts_.has_content = true;
  if (const JsonAt usage = event["usage"]; usage && usage.bytes() != "null")
    take_usage(usage.bytes());
}

void StreamFacts::on_responses(const JsonAt& event) {
  const std::string type = word(event["type"]);
  if (type == "error") failed_ = ended_ = true;
  if (type.starts_with("response.output") || type.ends_with(".delta")) facts_.has_content = true;
  const JsonAt response = event["response"];
  if (!response) return;
  if (facts_.id.empty()) facts_.id = word(response["id"]);
  if (type != "response.completed" && type != "response.incomplete" && type != "response.failed")
    return;
  ended_ = true;
  facts_.finish = type.substr(type.find('.') + 1);
  if (holds(response["output"])) facts_.has_content = true;
  take_usage(response["usage"].bytes());
  failed_ = type == "response.failed" && !facts_.usage;
}

void StreamFacts::on_messages(const JsonAt& event) {
  const std::string type = word(event["type"]);
  if (type == "message_stop") ended_ = true;
  if (type == "error") failed_ = ended_ = true;
  if (type.starts_with("content_block_")) facts_.has_content = true;
  if (const JsonAt message = event["message"]; message && type == "message_start") {
    facts_.id = word(message["id"]);
    first_usage_ = message["usage"].bytes();
    begun_ = read_usage(api_, first_usage_, long_cache_);
  }
  if (type != "message_delta") return;
  if (const JsonAt delta = event["delta"]) facts_.finish = word(delta["stop_reason"]);
  // Cumulative; what is missing stands in message_start.
  const Result<Json> first = parse_json(first_usage_);
  const Result<Json> last = parse_json(event["usage"].bytes());
  if (!last.ok() || !last->is_object()) return;
  Json whole = first.ok() && first->is_object() ? *first : Json::object();
  for (const auto& [key, value] : last->items())
    if (!value.is_null()) whole[key] = value;
  take_usage(whole.dump(-1, Json::Utf8::kReplace, true));
}

bool StreamFacts::is_bare_usage(const SseEvent& event) {
  const Result<JsonText> text = JsonText::read(event.data);
  if (!text.ok()) return false;
  const JsonAt root(*text), choices = root["choices"], usage = root["usage"];
  return choices.kind() == '[' && !holds(choices) && usage && usage.bytes() != "null";
}

namespace {
void add(std::vector<ToolCall>& out, ToolCall call) {
  if (out.size() < kToolCallsMax && !(call.id.empty() && call.name.empty()))
    out.push_back(std::move(call));
}

// Where an API's call of a tool says which and with what.
struct CallPaths {
  std::string_view id, name, arguments;
};
constexpr CallPaths kChatCall{"id", "function.name", "function.arguments"},
    kItem{"call_id", "name", "arguments"}, kBlock{"id", "name", "input"};

ToolCall call_of(const JsonAt& at, const CallPaths& paths) {
  return {at[paths.id].text(), at[paths.name].text(), at[paths.arguments].said()};
}

// {"type":"function_call","call_id":...,"name":...,"arguments":...} and its kin.
void add_item(std::vector<ToolCall>& out, const JsonAt& item) {
  const std::string type = item["type"].text();
  if (!type.ends_with("_call")) return;
  ToolCall call = call_of(item, kItem);
  if (call.name.empty()) call.name = type;
  for (const char* member : {"input", "action"})
    if (call.arguments.empty()) call.arguments = item[member].said();
  add(out, std::move(call));
}

bool is_call(const JsonAt& block) {
  return block["type"].text() == "tool_use";
}
}  // namespace

std::vector<ToolCall> tool_calls_in(ModelApi api, std::string_view body) {
  std::vector<ToolCall> out;
  const auto read = JsonText::read(body);
  if (!read.ok()) return out;
  const JsonAt root(*read);
  if (api == ModelApi::kChat)
    for (const JsonAt& choice : root["choices"].each())
      for (const JsonAt& call : choice["message.tool_calls"].each())
        add(out, call_of(call, kChatCall));
  if (api == ModelApi::kResponses)
    for (const JsonAt& item : root["output"].each()) add_item(out, item);
  if (api == ModelApi::kMessages)
    for (const JsonAt& block : root["content"].each())
      if (is_call(block)) add(out, call_of(block, kBlock));
  return out;
}

void StreamToolCalls::on(const SseEvent& event) {
  // Most events are texts: looking costs less than reading.
  const auto has = [&](std::string_view word) { return event.data.find(word) != word.npos; };
  const bool told = api_ == ModelApi::kChat ? has("\"tool_calls\"")
                    : api_ == ModelApi::kMessages
                        ? has("\"tool_use\"") || has("\"input_json_delta\"")
                        : api_ == ModelApi::kResponses && has("\"response.output_item.done\"");
  if (!told) return;
  const auto read = JsonText::read(event.data);
  if (!read.ok()) return;
  const JsonAt root(*read);
  if (api_ == ModelApi::kChat)
    on_chat(root);
  else if (api_ == ModelApi::kMessages)
    on_messages(root);
  else
    add_item(whole_, root["item"]);
}

void StreamToolCalls::append(ToolCall& call, const std::string& more) {
  constexpr std::size_t kMost = std::size_t{16} << 20;
  if (kMost < bytes_ + more.size()) return;
  bytes_ += more.size();
  call.arguments += more;
}

void StreamToolCalls::on_chat(const JsonAt& event) {
  for (const JsonAt& choice : event["choices"].each())
    for (const JsonAt& part : choice["delta.tool_calls"].each()) {
      const std::uint64_t index = part["index"].count();
      if (!open_.contains(index) && kToolCallsMax <= open_.size()) return;
      ToolCall& call = open_[index];
      if (std::string id = part[kChatCall.id].text(); !id.empty()) call.id = std::move(id);
      if (call.name.empty()) call.name = part[kChatCall.name].text();
      append(call, part[kChatCall.arguments].text());
    }
}

void StreamToolCalls::on_messages(const JsonAt& event) {
  const std::uint64_t index = event["index"].count();
  if (const JsonAt block = event["content_block"]; is_call(block)) {
    if (kToolCallsMax <= open_.size()) return;
    open_[index] = {block[kBlock.id].text(), block[kBlock.name].text(), ""};
  } else if (const auto it = open_.find(index); it != open_.end()) {
    append(it->second, event["delta.partial_json"].text());
  }
}

std::vector<ToolCall> StreamToolCalls::calls() const {
  std::vector<ToolCall> out = whole_;
  for (const auto& [index, call] : open_) add(out, call);
  return out;
}

std::size_t SaidText::in_body(std::size_t offset) const {
  const auto next =
      std::ranges::upper_bound(parts, offset, {}, &decltype(parts)::value_type::first);
  return next == parts.begin() ? 0 : std::prev(next)->second;
}

namespace {
// Members of answers that hold a model's words, and what it would have a tool do.
constexpr auto kWords = std::to_array<std::string_view>(
    {"content", "delta", "reasoning", "reasoning_content", "refusal", "text", "thinking"});
constexpr auto kForTool =
    std::to_array<std::string_view>({"action", "arguments", "input", "partial_json"});

bool is_one(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

void add_lines(const Json& value, std::string& out) {
  if (value.is_string()) out += value.string() + "\n";
  for (const auto& [name, member] : value.items()) add_lines(member, out);
  if (!value.is_array()) return;
  std::string words;
  for (const Json& item : value) {
    add_lines(item, out);
    if (item.is_string()) words += (words.empty() ? "" : " ") + item.string();
  }
  if (1 < value.size() && !words.empty()) out += words + "\n";
}

// The texts of an answer, put together by where they stand: parts of a stream that belong together
// have the same members and indices on their way.
class SaidTexts {
 public:
  // One JSON text; `event`: where in the body the event of a stream begins that has it.
  bool read(std::string_view json, std::optional<std::size_t> event) {
    const Result<JsonText> text = JsonText::read(json);
    if (!text.ok()) return false;
    event_ = event;
    const std::string type = JsonAt(*text)["type"].text();
    calls_tool_ = type.find("_call") != type.npos;
    walk(*text, text->root(), {}, type, {});
    return true;
  }

  std::vector<SaidText> take() {
    for (SaidText& said : out_) {
      if (!said.for_tool) continue;
      const Result<Json> arguments = parse_json(said.text);
      if (!arguments.ok() || !arguments->is_structured()) continue;
      said.text.clear();
      add_lines(*arguments, said.text);
      said.parts.resize(1);
    }
    std::erase_if(out_, [](const SaidText& said) { return said.text.empty(); });
    return std::move(out_);
  }

 private:
  void add(const std::string& place, std::string text, std::size_t at, bool for_tool) {
    const auto [it, is_new] = places_.emplace(place, out_.size());
    if (is_new) out_.push_back({{}, for_tool, {}});
    SaidText& said = out_[it->second];
    said.parts.emplace_back(said.text.size(), event_.value_or(at));
    said.text += text;
  }

  // The JSON, where it is no string or none that can be read.
  static std::string said(const JsonText& json, JsonSpan value) {
    return json.text(value).value_or(std::string(json.bytes(value)));
  }

  // `key`: the member whose value this is or is in a list of; `nth`: where in the list.
  void walk(const JsonText& json, JsonSpan value, std::string_view key, const std::string& place,
            const std::string& nth) {
    const char kind = json.kind(value);
    if (kind == '"' && is_one(kWords, key))
      add(place + nth, said(json, value), value.at, key == "delta" && calls_tool_);
    if (kind == '[') {
      const auto elements = json.elements(value);
      for (std::size_t i = 0; elements.ok() && i < elements->size(); ++i)
        walk(json, (*elements)[i], key, place + nth, fmt::format("/{}", i));
    }
    if (kind != '{') return;
    const auto members = json.members(value);
    if (!members.ok()) return;
    // A stream says the place in a list by an index.
    std::string here;
    for (const JsonMember& m : *members)
      if (m.key.ends_with("index")) here += fmt::format("/{}", json.bytes(m.value));
    here = place + (here.empty() ? nth : here) + "/";
    for (const JsonMember& m : *members) {
      if (m.key == "tools") continue;  // an echo of the request's
      if (!is_one(kForTool, m.key))
        walk(json, m.value, m.key, here + m.key, {});
      else
        add(here + m.key, said(json, m.value), m.value.at, true);
    }
  }

  std::optional<std::size_t> event_;
  bool calls_tool_ = false;  // by the type of the present event
  std::vector<SaidText> out_;
  std::map<std::string, std::size_t> places_;
};
}  // namespace

std::vector<SaidText> said_in(std::string_view body) {
  SaidTexts out;
  if (out.read(body, std::nullopt)) return out.take();
  SseScan scan;
  const auto events = scan.feed(body);
  if (!events.ok()) return {};
  std::size_t at = 0;
  for (const SseEvent& event : *events) {
    out.read(event.data, at);
    at += event.bytes.size();
  }
  return out.take();
}
}  // namespace proctor
