#include "common/answers/single_shot.h"

#include <algorithm>
#include <cmath>

#include "common/answers/json.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/json_text.h"
#include "common/base/text.h"

namespace proctor::answers {
namespace {
constexpr std::string_view kFence = "```";

// Behind a language tag that stands alone on its line.
std::size_t behind_tag(std::string_view text, std::size_t from) {
  std::size_t at = from;
  while (at < text.size()) {
    std::size_t next = at;
    if (!is_word(next_code_point(text, next))) break;
    at = next;
  }
  return from < at && at < text.size() && text[at] == '\n' ? at + 1 : from;
}

std::string without_controls(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text)
    if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F) out += c;
  return out;
}

void unfence(Value& value) {
  if (std::string* s = value.string()) {
    if (const auto body = first_fenced(*s)) *s = std::string(*body);
  } else if (Array* a = value.array()) {
    for (Value& v : *a) unfence(v);
  } else if (Object* o = value.object()) {
    for (Member& m : o->members()) unfence(m.value);
  }
}

Result<Object> object_in(std::string_view text) {
  const std::size_t from = text.find('{');
  const std::size_t to = text.rfind('}');
  if (from == std::string_view::npos || to == std::string_view::npos || to < from)
    return Error{Errc::kInvalid, "the answer holds no JSON object"};
  PROCTOR_TRY(Value value, read_json(text.substr(from, to - from + 1)));
  return std::move(*value.object());
}

bool is_ascii_word(char c) {
  return is_word(static_cast<unsigned char>(c)) && static_cast<unsigned char>(c) < 0x80;
}
std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && is_space(static_cast<unsigned char>(text[at])) &&
         static_cast<unsigned char>(text[at]) < 0x80)
    ++at;
  return at;
}

// {key: and ,key: become { "key": and , "key":.
std::string quote_keys(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    out += c;
    ++at;
    if (c != '{' && c != ',') continue;
    const std::size_t from = skip_blanks(text, at);
    std::size_t to = from;
    while (to < text.size() && is_ascii_word(text[to])) ++to;
    const std::size_t colon = skip_blanks(text, to);
    if (from == to || colon == text.size() || text[colon] != ':') continue;
    out += " \"" + std::string(text.substr(from, to - from)) + "\":";
    at = colon + 1;
  }
  return out;
}

// : word} at the very end becomes : "word"}.
std::string quote_last_word(std::string text) {
  if (!text.ends_with('}')) return text;
  const std::string_view body(text.data(), text.size() - 1);
  const std::size_t colon = body.rfind(':');
  if (colon == std::string_view::npos) return text;
  const std::size_t from = skip_blanks(body, colon + 1);
  const std::string_view word = strip_text(body.substr(from));
  if (word.empty() ||
      !std::all_of(word.begin(), word.end(), [](char c) { return is_ascii_word(c) || c == ' '; }) ||
      !std::any_of(word.begin(), word.end(), [](char c) { return c < '0' || '9' < c; }))
    return text;
  return std::string(body.substr(0, from)) + "\"" + std::string(word) + "\"" +
         std::string(body.substr(from + word.size())) + "}";
}

// The first {...} without braces inside that names a score.
std::optional<std::string_view> flat_score_object(std::string_view text) {
  for (std::size_t close = text.find('}'); close != std::string_view::npos;
       close = text.find('}', close + 1)) {
    const std::size_t open = text.rfind('{', close);
    if (open == std::string_view::npos) continue;
    const std::string_view object = text.substr(open, close - open + 1);
    if (object.find('}') == object.size() - 1 && object.find("\"score\"") != std::string_view::npos)
      return object;
  }
  return std::nullopt;
}

Result<Judgement> judgement_in(std::string_view text) {
  PROCTOR_TRY(const Value value, read_json(strip_text(text)));
  const Value* score = value.object() == nullptr ? nullptr : value.object()->find("score");
  const auto d = score == nullptr || score->number() == nullptr ? std::nullopt : score->as_double();
  if (!d || std::isnan(*d)) return Error{Errc::kInvalid, "no number under \"score\""};
  Judgement out;
  out.score = std::clamp(*d, 0.0, 1.0);
  out.pass = kJudgePass <= out.score;
  if (const std::string* why = text_at(value, "reasoning")) out.reasoning = *why;
  return out;
}
}  // namespace

std::optional<std::string_view> first_fenced(std::string_view text) {
  const std::size_t open = text.find(kFence);
  if (open == std::string_view::npos) return std::nullopt;
  for (const std::size_t from : {behind_tag(text, open + 3), open + 3}) {
    const std::size_t close = text.find(kFence, from);
    if (close != std::string_view::npos) return text.substr(from, close - from);
  }
  return std::nullopt;
}

Result<Object> parse_response(std::string_view text, AnswerForm form) {
  const std::string_view bare = strip_text(text);
  if (form == AnswerForm::kPlainText) {
    const auto body = first_fenced(bare);
    Object out;
    out.set("direct_text", body ? *body : bare);
    return out;
  }
  const std::string clean = without_controls(bare);
  Result<Object> found = object_in(clean);
  if (!found.ok() && bare.starts_with('{') && bare.ends_with('}'))
    if (Result<Object> repaired = object_in(without_controls(repair_json(bare))); repaired.ok())
      found = std::move(repaired);
  if (!found.ok()) return found;
  for (const char* key : {"code", "response"})
    if (Value* v = found->find(key)) unfence(*v);
  return found;
}

std::string repair_json(std::string_view text) {
  return quote_last_word(quote_keys(text));
}

AnsweredFiles files_of_response(const Object& response, const std::vector<std::string>& expected) {
  AnsweredFiles out;
  const auto put = [&](const std::string& path, const Value& value) {
    if (!is_safe_relative(path)) return out.refused.push_back(path);
    const std::string* s = value.string();
    out.files.push_back({path, s == nullptr ? python_repr_of(value) : *s});
  };
  const Value* direct = response.find("direct_text");
  if (direct == nullptr) direct = response.find("response");
  const Value* code = response.find("code");
  if (expected.size() == 1 && direct != nullptr) {
    put(expected.front(), *direct);
  } else if (code != nullptr && code->array() != nullptr) {
    for (const Value& element : *code->array())
      if (const Object* o = element.object())
        for (const Member& m : *o) put(m.key, m.value);
  } else {
    put("subjective.txt", direct == nullptr ? Value(python_repr_of(Value(response))) : *direct);
  }
  return out;
}

Result<Judgement> parse_judgement(std::string_view reply) {
  std::string_view inner = reply;
  std::size_t from = reply.find("```json");
  from = from == std::string_view::npos ? reply.find(kFence) : from + 4;
  if (from != std::string_view::npos) {
    inner.remove_prefix(from + 3);
    inner = inner.substr(0, inner.rfind(kFence));
  }
  Result<Judgement> out = judgement_in(inner);
  if (out.ok()) return out;
  if (const auto flat = flat_score_object(reply)) return judgement_in(*flat);
  return out;
}

namespace {
constexpr std::string_view kKinds[] = {"files", "judgement"};

Object object_of(const std::vector<AnsweredFile>& files) {
  Object out;
  for (const AnsweredFile& f : files) out.set(f.path, Value(f.text));
  return out;
}

Result<std::vector<AnsweredFile>> files_in(const Value& value, const std::string& where) {
  const Object* o = value.object();
  if (o == nullptr)
    return Error{Errc::kInvalid, where + ": expected files, found " + std::string(value.kind())};
  std::vector<AnsweredFile> out;
  for (const Member& m : *o) {
    const std::string* text = m.value.string();
    if (text == nullptr || !is_safe_relative(m.key))
      return Error{Errc::kInvalid,
                   where + ": \"" + printable(m.key) + "\" is no file of a workspace"};
    out.push_back({m.key, *text});
  }
  return out;
}

Value value_of(const GivenAnswer& given) {
  Object out;
  std::visit(Overload{[&](const GivenText& g) { out.append("text", Value(g.text)); },
                      [&](const GivenFiles& g) { out.append("files", object_of(g.files)); },
                      [&](const GivenPatch& g) { out.append("patch", Value(g.diff)); }},
             given);
  return Value(std::move(out));
}

Result<GivenAnswer> given_in(const Value& value, const std::string& where) {
  if (const std::string* text = text_at(value, "text")) return GivenAnswer(GivenText{*text});
  if (const std::string* diff = text_at(value, "patch")) return GivenAnswer(GivenPatch{*diff});
  const Value* files = value.object() == nullptr ? nullptr : value.object()->find("files");
  if (files == nullptr)
    return Error{Errc::kInvalid, where + ": expected text, files or patch, found none of them"};
  PROCTOR_TRY(std::vector<AnsweredFile> read, files_in(*files, where + ".files"));
  return GivenAnswer(GivenFiles{std::move(read)});
}

Status read_given(const Value& value, SingleShotTask& out) {
  const Array* given = value.array();
  if (given == nullptr || given->empty())
    return Error{Errc::kInvalid,
                 "given: expected a list of answers, found " + std::string(value.kind())};
  for (const Value& one : *given) {
    PROCTOR_TRY(GivenAnswer answer,
                given_in(one, "given[" + std::to_string(out.given.size()) + "]"));
    out.given.push_back(std::move(answer));
  }
  return ok_status();
}
}  // namespace

std::string write_task(const SingleShotTask& task) {
  Object out;
  out.append("format", 1);
  out.append("answer", kKinds[task.answer == AnswerKind::kFiles ? 0 : 1]);
  Array expected;
  for (const std::string& path : task.expected) expected.emplace_back(path);
  out.append("expected", std::move(expected));
  if (task.given.empty()) {
    Object prompt;
    prompt.append("system", task.system);
    prompt.append("user", task.user);
    out.append("prompt", std::move(prompt));
  } else {
    Array given;
    for (const GivenAnswer& one : task.given) given.push_back(value_of(one));
    out.append("given", std::move(given));
  }
  return write_json(Value(std::move(out))) + "\n";
}

Result<SingleShotTask> read_task(std::string_view text) {
  PROCTOR_TRY(const Value value, read_json(text));
  const Object* o = value.object();
  if (o == nullptr) return Error{Errc::kInvalid, "expected a mapping"};
  const Value* format = o->find("format");
  if (format == nullptr || format->number() == nullptr || format->number()->text != "1")
    return Error{Errc::kInvalid, "format: expected 1"};
  SingleShotTask out;
  const std::string* kind = text_at(*o, "answer");
  if (kind == nullptr || (*kind != kKinds[0] && *kind != kKinds[1]))
    return Error{Errc::kInvalid, "answer: expected files or judgement"};
  out.answer = *kind == kKinds[0] ? AnswerKind::kFiles : AnswerKind::kJudgement;
  if (const Value* expected = o->find("expected")) {
    if (expected->array() == nullptr) return Error{Errc::kInvalid, "expected: expected a list"};
    for (const Value& path : *expected->array()) {
      if (path.string() == nullptr || !is_safe_relative(*path.string()))
        return Error{Errc::kInvalid, "expected: a file name leads outside or is none"};
      out.expected.push_back(*path.string());
    }
  }
  if (const Value* given = o->find("given")) {
    PROCTOR_CHECK_OK(read_given(*given, out));
    return out;
  }
  const Value* prompt = o->find("prompt");
  const std::string* system = prompt == nullptr ? nullptr : text_at(*prompt, "system");
  const std::string* user = prompt == nullptr ? nullptr : text_at(*prompt, "user");
  if (system == nullptr || user == nullptr)
    return Error{Errc::kInvalid, "prompt: expected the texts system and user"};
  out.system = *system;
  out.user = *user;
  return out;
}

Result<AnsweredFiles> files_of_reply(const SingleShotTask& task, std::string_view reply) {
  if (task.answer == AnswerKind::kJudgement) {
    PROCTOR_TRY(const Judgement judgement, parse_judgement(reply));
    Object out;
    out.append("score", real(judgement.score));
    out.append("reasoning", judgement.reasoning);
    return AnsweredFiles{{{kJudgementFile, write_json(Value(std::move(out))) + "\n"}}, {}};
  }
  PROCTOR_TRY(const Object response, parse_response(reply, form_for(task.expected.size())));
  return files_of_response(response, task.expected);
}

AnsweredFiles files_of_no_reply(const SingleShotTask& task) {
  if (task.answer == AnswerKind::kJudgement) return {};
  return files_of_response(Object(), task.expected);
}

std::string write_answer(const AnsweredFiles& answer) {
  Object out;
  out.append("files", object_of(answer.files));
  Array refused;
  for (const std::string& name : answer.refused) refused.emplace_back(name);
  out.append("refused", std::move(refused));
  return write_json(Value(std::move(out))) + "\n";
}

Result<AnsweredFiles> read_answer(std::string_view text) {
  PROCTOR_TRY(const Value value, read_json(text));
  const Value* files = value.object() == nullptr ? nullptr : value.object()->find("files");
  if (files == nullptr) return Error{Errc::kInvalid, "files: expected a mapping, found nothing"};
  AnsweredFiles out;
  PROCTOR_TRY(out.files, files_in(*files, "files"));
  return out;
}

std::uint64_t prompt_ceiling(std::string_view system, std::string_view user) {
  // The rest of a body, two items, and the usual `hidden_input_tokens`.
  constexpr std::uint64_t kAround = 256 + 2'048;
  const auto written = [](std::string_view text) {
    return Json(text).dump(-1, Json::Utf8::kReplace).size();
  };
  return written(system) + written(user) + kAround;
}
}  // namespace proctor::answers
