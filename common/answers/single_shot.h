#pragma once
// What a single-shot method is asked about one problem, or what it is to hand in without being
// asked: the file that a contract names under `single_shot`.  A campaign's maker writes it,
// workers read it.
//
//   {"format": 1, "answer": "files", "expected": ["rtl/a.sv"],
//    "prompt": {"system": "...", "user": "..."}}
//   {"format": 1, "answer": "files", "expected": [...],
//    "given": [{"text": "..."}, {"files": {"rtl/a.sv": "..."}}, {"patch": "diff --git ..."}]}
//
// "answer": "files" is read as a model's files (response.h), "judgement" as a judge's reply.
// "given": the answer of each replicate, in their order.  Pure; any thread.
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/answers/response.h"
#include "common/answers/value.h"
#include "common/base/result.h"

namespace proctor::answers {

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
