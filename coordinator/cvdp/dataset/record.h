#pragma once
// One problem of a CVDP dataset: its id, its shape, and what is wrong with it.
// A record is kept as the JSON it was (common/answers/json.h), because the transformation and the
// reports need every member in its place; here are the rules about it.  Pure; any thread.  Source:
// CVDP 1.2-1.7.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "coordinator/cvdp/pycompat/python_text.h"

namespace proctor::cvdp {
enum class Shape { kCopilot, kAgentic };
std::string_view to_string(Shape shape);

// cvdp_<mode>_<name...>_<number>
struct ProblemId {
  std::string text;
  Shape shape = Shape::kCopilot;  // by the second word, as upstream decides
  bool heavy = false;             // its context is a commit of a repository
  std::string repository;         // cvdp_<mode>_<name...>: the folder upstream gives it
  std::uint64_t issue = 0;        // the number, leading zeros gone: a folder inside
};
// Fails with kInvalid on an id that upstream cannot use or that is no plain file name.
Result<ProblemId> parse_id(std::string_view id);

// 3 of "cid003"; upstream also takes "3" and anything with digits at its end.  -1: none.
int category_number(std::string_view category);
bool is_comprehension(int category);
bool is_difficulty(std::string_view word);

// The shape by its members, as upstream's tools decide it: input.context is copilot, context with
// patch is agentic.  kInvalid when it is neither.
Result<Shape> shape_of(const Value& record);

struct Finding {
  enum class Weight { kWarning, kError };
  Weight weight = Weight::kError;
  std::uint64_t line = 0;  // from 1; 0: the file
  std::string field;       // "harness.files.docker-compose.yml"; empty: the record
  std::string text;
};
// "12: error: categories[1]: ..." without the file; safe to print.
std::string to_string(const Finding& finding);

struct Record {
  std::uint64_t line = 0;
  ProblemId id;
  Shape shape = Shape::kCopilot;
  std::string category;    // "cid003"
  std::string difficulty;  // "easy"
  bool redacted = false;   // a solution is asked for and every one given is empty
  Value value;             // always a mapping
  // The files by path of a harness whose folders are mappings; nothing: it has paths itself.
  std::optional<Object> flat_harness;
};

// The harness files of a record of either shape, flat or under `files`; null where there are none.
const Object* harness_files(const Record& record);
const Object* context_files(const Record& record);
// The text of the harness's docker-compose.yml.
const std::string* compose_of(const Record& record);
// Its solution: whole files (copilot) or diffs (agentic).
const Object* solution_files(const Record& record);
const std::string* prompt_of(const Record& record);
// The text that a comprehension answer is compared with: subjective_reference, else
// output.response, else "".
std::string_view reference_of(const Record& record);

// Reads the id, shape and categories of `value` and judges everything else; findings carry `line`.
// A record with an error is not for use.
Record check_record(Value value, std::uint64_t line, std::vector<Finding>& findings);
}  // namespace proctor::cvdp
