#include "common/score/tap.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor {
namespace {

constexpr std::size_t kLineBytes = std::size_t{64} << 10;

Error invalid(std::string detail) {
  return Error{Errc::kInvalid, "TAP: " + std::move(detail)};
}

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}
bool starts_with_word(std::string_view s, std::string_view word) {
  return word.size() <= s.size() &&
         std::ranges::equal(s.substr(0, word.size()), word, {}, [](char c) {
           return 'a' <= c && c <= 'z' ? static_cast<char>(c - 32) : c;
         });
}

struct Line {
  std::string description;
  std::string_view directive;  // after '#', trimmed
};

// A directive begins at the first '#' that follows a blank and is not escaped; "\#" is a '#'.
Line split_directive(std::string_view text) {
  Line out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '#' || text[i + 1] == '\\')) {
      out.description += text[++i];
      continue;
    }
    if (text[i] == '#' && (i == 0 || is_blank(text[i - 1]))) {
      out.directive = trimmed(text.substr(i + 1));
      break;
    }
    out.description += text[i];
  }
  out.description = std::string(trimmed(out.description));
  return out;
}

class Parser {
 public:
  Status line(std::string_view text) {
    if (starts_with_word(text, "BAIL OUT!"))
      return invalid("bailed out: " + printable(trimmed(text.substr(9)), 200));
    if (text.starts_with("1..")) return plan(text.substr(3));
    if (text.starts_with("not ok") && ends_word(text, 6)) return test(text.substr(6), false);
    if (text.starts_with("ok") && ends_word(text, 2)) return test(text.substr(2), true);
    return ok_status();
  }

  Result<TestResults> finish() {
    if (!planned_) return invalid("no plan: the stream is not complete");
    if (*planned_ != count_)
      return invalid("planned " + std::to_string(*planned_) + " tests and ran " +
                     std::to_string(count_));
    if (!numbers_.empty() && *planned_ < *numbers_.rbegin())
      return invalid("test number " + std::to_string(*numbers_.rbegin()) + " beyond the plan");
    return std::move(results_);
  }

 private:
  static bool ends_word(std::string_view text, std::size_t at) {
    return text.size() == at || is_blank(text[at]);
  }

  Status plan(std::string_view rest) {
    if (planned_) return invalid("a second plan");
    std::size_t n = 0;
    const bool counted = take_number(rest, n);
    rest = trimmed(rest);
    if (!counted || (!rest.empty() && rest.front() != '#'))
      return invalid("a plan that is not 1..N");
    if (kResultTests < n) return invalid("a plan of " + std::to_string(n) + " tests");
    planned_ = n;
    return ok_status();
  }

  Status test(std::string_view rest, bool passed) {
    if (kResultTests <= count_)
      return invalid("more than " + std::to_string(kResultTests) + " tests");
    ++count_;
    rest = trimmed(rest);
    std::size_t number = count_;
    // "ok 2nd try" is a description, "ok 2" and "ok 2 - x" are numbered.
    std::string_view after = rest;
    std::uint32_t said = 0;
    if (take_number(after, said) && (after.empty() || is_blank(after.front()))) {
      number = said;
      rest = trimmed(after);
    }
    if (number == 0 || !numbers_.insert(number).second)
      return invalid("test number " + std::to_string(number) + " twice or zero");
    if (rest == "-" || rest.starts_with("- ")) rest = trimmed(rest.substr(1));
    Line parts = split_directive(rest);
    if (parts.description.empty()) parts.description = std::to_string(number);
    if (kTestIdBytes < parts.description.size()) return invalid("a description beyond 4096 bytes");
    TestStatus status = passed ? TestStatus::kPass : TestStatus::kFail;
    if (starts_with_word(parts.directive, "SKIP") ||
        (!passed && starts_with_word(parts.directive, "TODO")))
      status = TestStatus::kSkip;
    results_.add(std::move(parts.description), status);
    return ok_status();
  }

  TestResults results_;
  std::optional<std::size_t> planned_;
  std::size_t count_ = 0;
  std::set<std::size_t> numbers_;
};

}  // namespace

Result<TestResults> parse_tap(std::string_view bytes) {
  if (kResultFileBytes < bytes.size())
    return invalid(std::to_string(bytes.size()) + " bytes; at most " +
                   std::to_string(kResultFileBytes) + " are read");
  if (!is_utf8(bytes)) return invalid("not UTF-8");
  // "ok" may be the front of "okay, ...": a line that was cut must not count.
  if (!bytes.empty() && bytes.back() != '\n') return invalid("the last line has no end");
  Parser parser;
  std::size_t number = 0;
  while (!bytes.empty()) {
    ++number;
    std::string_view line = take_until(bytes, '\n');
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (kLineBytes < line.size())
      return invalid("line " + std::to_string(number) + " is longer than 64 KiB");
    if (Status s = parser.line(line); !s.ok())
      return Error{Errc::kInvalid, s.error().detail + " (line " + std::to_string(number) + ")"};
  }
  return parser.finish();
}

}  // namespace proctor
