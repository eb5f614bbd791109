#pragma once
// The task of a single-shot method, and a model's answer as files.  Pure; any thread.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/answers/json.h"
#include "common/base/result.h"

namespace proctor::answers {
// A model's answer as files.  An answer is hostile: any size, any bytes, any file name.
// Reading never fails but says why it got nothing.

enum class AnswerForm { kPlainText, kJson };
// One expected file is asked for as plain text, everything else as JSON.
inline AnswerForm form_for(std::size_t expected_files) {
  return expected_files == 1 ? AnswerForm::kPlainText : AnswerForm::kJson;
}

// The body of the first block between fences of three backticks; nothing when none is closed.
std::optional<std::string_view> first_fenced(std::string_view text);

// {"direct_text": ...} or the object the answer holds.  kInvalid: there is none.
Result<Object> parse_response(std::string_view text, AnswerForm form);

// Two repairs of bare keys and bare words.  They also damage sound JSON, so they are used on
// what does not parse without them alone.
std::string repair_json(std::string_view text);

struct AnsweredFile {
  std::string path;
  std::string text;
};
struct AnsweredFiles {
  std::vector<AnsweredFile> files;
  std::vector<std::string> refused;  // names that lead out of the folder
};
AnsweredFiles files_of_response(const Object& response, const std::vector<std::string>& expected);

struct Judgement {
  double score = 0;  // 0 to 1
  std::string reasoning;
  bool pass = false;
};
inline constexpr double kJudgePass = 0.7;
// kInvalid: there is no object with a number under "score".
Result<Judgement> parse_judgement(std::string_view reply);

// The task of a single-shot method: the question about one problem, or the answers that it hands in
// without being asked.  It is the file that a contract names under `single_shot`.  A campaign's
// maker writes it, workers read it.
//
//   {"format": 1, "answer": "files", "expected": ["rtl/a.sv"],
//    "prompt": {"system": "...", "user": "..."}}
//   {"format": 1, "answer": "files", "expected": [...],
//    "given": [{"text": "..."}, {"files": {"rtl/a.sv": "..."}}, {"patch": "diff --git ..."}]}
//
// "answer": "files" is read as a model's files, "judgement" as a judge's reply.
// "given": the answer of each replicate, in their order.

enum class AnswerKind { kFiles, kJudgement };

struct GivenText {
  std::string text;  // as a model said it
};
struct GivenFiles {
  std::vector<AnsweredFile> files;
};
struct GivenPatch {
  std::string diff;  // for git
};
using GivenAnswer = std::variant<GivenText, GivenFiles, GivenPatch>;

struct SingleShotTask {
  AnswerKind answer = AnswerKind::kFiles;
  std::vector<std::string> expected;
  std::string system, user;
  std::vector<GivenAnswer> given;  // none: a model is asked
};

std::string write_task(const SingleShotTask& task);
// kInvalid: what it is not, and where.
Result<SingleShotTask> read_task(std::string_view text);

// The most tokens of input that a call with these two messages is taken for: one for every byte,
// and what a provider puts round them.
std::uint64_t prompt_ceiling(std::string_view system, std::string_view user);

inline constexpr const char* kJudgementFile = "judgement.json";

// One reply as the files it puts into the workspace.  kInvalid: it cannot be read, so a model is
// asked again.
Result<AnsweredFiles> files_of_reply(const SingleShotTask& task, std::string_view reply);
// The empty answer: it counts when no reply could be read.
AnsweredFiles files_of_no_reply(const SingleShotTask& task);

// {"files": {path: text}, "refused": [...]}: the evidence of what was put into the workspace.
std::string write_answer(const AnsweredFiles& answer);
Result<AnsweredFiles> read_answer(std::string_view text);
}  // namespace proctor::answers
