#pragma once
// What a model answered, as files.  An answer is hostile: any size, any bytes, any file name.
// Pure; any thread; never fails but says why it got nothing.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/answers/value.h"
#include "common/base/result.h"

namespace proctor::answers {

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

}  // namespace proctor::answers
