#include "common/answers/single_shot.h"

#include "common/answers/json.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/overload.h"
#include "common/base/text.h"

namespace proctor::answers {
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
