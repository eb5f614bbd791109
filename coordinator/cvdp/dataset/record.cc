#include "coordinator/cvdp/dataset/record.h"

#include <algorithm>
#include <array>

#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor::cvdp {
namespace {

// A word that can be a folder's name: upstream makes one of it unlooked.
bool is_plain_name(std::string_view word) {
  return std::all_of(word.begin(), word.end(), [](char c) {
    const bool letter = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z');
    return letter || is_digit(c) || c == '_' || c == '-' || c == '.';
  });
}

}  // namespace

std::string_view to_string(Shape shape) {
  return shape == Shape::kCopilot ? "copilot" : "agentic";
}

Result<ProblemId> parse_id(std::string_view id) {
  constexpr std::size_t kIdBytes = 200;
  const auto wrong = [&](std::string_view why) {
    return Error{Errc::kInvalid, "\"" + printable(id) + "\" " + std::string(why)};
  };
  if (kIdBytes < id.size()) return wrong("is longer than 200 bytes");
  if (!is_plain_name(id))
    return wrong("has characters other than letters, digits, \"_\", \"-\" and \".\"");
  const std::size_t first = id.find('_');
  const std::size_t last = id.rfind('_');
  if (first == std::string_view::npos) return wrong("has no \"_\" (upstream aborts the whole run)");
  const std::string_view number = id.substr(last + 1);
  const auto issue = whole_number<std::uint64_t>(number);
  if (!issue) return wrong("does not end in \"_\" and a number (upstream cannot prepare it)");
  ProblemId out;
  out.issue = *issue;
  out.text = id;
  const std::size_t second = id.find('_', first + 1);
  const std::string_view mode =
      id.substr(first + 1, second == std::string_view::npos ? second : second - first - 1);
  out.shape = mode == "agentic" ? Shape::kAgentic : Shape::kCopilot;
  out.heavy = id.find("cvdp_agentic_heavy") != std::string_view::npos;
  out.repository = "cvdp_" + std::string(first < last ? id.substr(first + 1, last - first - 1)
                                                      : std::string_view());
  return out;
}

int category_number(std::string_view category) {
  std::string_view digits = category;
  if (digits.starts_with("cid")) digits.remove_prefix(3);
  std::size_t from = digits.size();
  while (0 < from && is_digit(digits[from - 1])) --from;
  digits.remove_prefix(from);
  return whole_number<int>(digits).value_or(-1);
}

bool is_comprehension(int category) {
  return category == 6 || (8 <= category && category <= 10);
}

bool is_difficulty(std::string_view word) {
  static constexpr std::array<std::string_view, 3> kWords = {"easy", "medium", "hard"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

Result<Shape> shape_of(const Value& record) {
  const Object* o = record.object();
  if (o == nullptr)
    return Error{Errc::kInvalid, "a record is a mapping, found " + std::string(record.kind())};
  const Value* input = o->find("input");
  if (input != nullptr && input->object() != nullptr && input->object()->find("context") != nullptr)
    return Shape::kCopilot;
  if (o->find("context") != nullptr && o->find("patch") != nullptr) return Shape::kAgentic;
  return Error{Errc::kInvalid,
               "neither copilot (input.context) nor agentic (context and patch) in shape"};
}

std::string to_string(const Finding& f) {
  std::string out = std::to_string(f.line);
  out += f.weight == Finding::Weight::kError ? ": error: " : ": warning: ";
  if (!f.field.empty()) out += printable(f.field) + ": ";
  return out + printable(f.text, 1000);
}

const Object* harness_files(const Record& record) {
  if (record.flat_harness) return &*record.flat_harness;
  const Object* harness = object_at(record.value, "harness");
  const Value* files = harness == nullptr ? nullptr : harness->find("files");
  // A text is a file of this name.
  const bool flat =
      files == nullptr || (record.shape == Shape::kAgentic && files->string() != nullptr);
  return flat ? harness : files->object();
}

const Object* context_files(const Record& record) {
  const Object* top = record.value.object();
  if (record.shape == Shape::kAgentic) return object_at(record.value, "context");
  const Value* input = top->find("input");
  return input == nullptr ? nullptr : object_at(*input, "context");
}

const Object* solution_files(const Record& record) {
  if (record.shape == Shape::kAgentic) return object_at(record.value, "patch");
  const Value* output = record.value.object()->find("output");
  return output == nullptr ? nullptr : object_at(*output, "context");
}

const std::string* prompt_of(const Record& record) {
  if (record.shape == Shape::kAgentic) return text_at(record.value, "prompt");
  const Value* input = record.value.object()->find("input");
  return input == nullptr ? nullptr : text_at(*input, "prompt");
}

std::string_view reference_of(const Record& record) {
  if (const std::string* s = text_at(record.value, "subjective_reference")) return *s;
  const Value* output = record.value.object()->find("output");
  const std::string* s = output == nullptr ? nullptr : text_at(*output, "response");
  return s == nullptr ? std::string_view() : std::string_view(*s);
}

}  // namespace proctor::cvdp
