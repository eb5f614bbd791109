#include "common/score/tap.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string>

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
std::string_view trim(std::string_view s) {
  while (!s.empty() && is_blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_blank(s.back())) s.remove_suffix(1);
  return s;
}
bool starts_with_word(std::string_view s, std::string_view word) {
  return word.size() <= s.size() &&
         std::ranges::equal(s.substr(0, word.size()), word, {}, [](char c) {
           return 'a' <= c && c <= 'z' ? static_cast<char>(c - 32) : c;
         });
}

// Takes decimal digits from the front; nothing where there are none or too many.
std::optional<std::size_t> take_number(std::string_view& s) {
  std::size_t n = 0;
  const auto [end, ec] = std::from_chars(s.data(), s.data() + s.size(), n);
  if (ec != std::errc() || 1'000'000'000 < n) return std::nullopt;
  s.remove_prefix(static_cast<std::size_t>(end - s.data()));
  return n;
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
      out.directive = trim(text.substr(i + 1));
      break;
    }
    out.description += text[i];
  }
  out.description = std::string(trim(out.description));
  return out;
}

class Parser {
 public:
  Status line(std::string_view text) {
    if (starts_with_word(text, "BAIL OUT!"))
      return invalid("bailed out: " + printable(trim(text.substr(9)), 200));
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
    const std::optional<std::size_t> n = take_number(rest);
    rest = trim(rest);
    if (!n || (!rest.empty() && rest.front() != '#')) return invalid("a plan that is not 1..N");
    if (kResultTests < *n) return invalid("a plan of " + std::to_string(*n) + " tests");
    planned_ = n;
    return ok_status();
  }

  Status test(std::string_view rest, bool passed) {
    if (kResultTests <= count_)
      return invalid("more than " + std::to_string(kResultTests) + " tests");
    ++count_;
    rest = trim(rest);
    std::size_t number = count_;
    // "ok 2nd try" is a description, "ok 2" and "ok 2 - x" are numbered.
    std::string_view after = rest;
    if (const auto n = take_number(after); n && (after.empty() || is_blank(after.front()))) {
      number = *n;
      rest = trim(after);
    }
    if (number == 0 || !numbers_.insert(number).second)
      return invalid("test number " + std::to_string(number) + " twice or zero");
    if (rest == "-" || rest.starts_with("- ")) rest = trim(rest.substr(1));
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
    const std::size_t end = std::min(bytes.find('\n'), bytes.size());
    std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (kLineBytes < line.size())
      return invalid("line " + std::to_string(number) + " is longer than 64 KiB");
    if (Status s = parser.line(line); !s.ok())
      return Error{Errc::kInvalid, s.error().detail + " (line " + std::to_string(number) + ")"};
  }
  return parser.finish();
}

}  // namespace proctor
