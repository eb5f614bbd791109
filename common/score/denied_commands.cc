#include "common/score/denied_commands.h"

#include <algorithm>

#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor {
namespace {
constexpr auto kNowhere = std::string_view::npos;

std::string segment_of(std::string_view line, std::size_t match) {
  // printable() makes four bytes of one at most, and adds 19 at most to what it is asked for.
  constexpr std::size_t kShown = 380, kBefore = 50, kWidest = 4;
  std::string whole = printable(line.substr(0, kShown + 1), kWidest * (kShown + 1));
  if (whole.size() <= kShown) return whole;
  return printable(line.substr(match - std::min(match, kBefore), kShown), kShown);
}

// Fences of Markdown, indented however deep, as in lists.  Source: CommonMark 0.31, section 4.5.
class FenceScan {
 public:
  // Is the next line inside a fence?  Lines that open or close one are not.
  bool is_inside(std::string_view line) {
    const std::size_t at = line.find_first_not_of(" \t");
    if (at == kNowhere) return length_ != 0;
    const char mark = line[at];
    const std::size_t end = std::min(line.find_first_not_of(mark, at), line.size());
    const std::size_t length = mark == '`' || mark == '~' ? end - at : 0;
    const std::string_view rest = line.substr(end);
    if (length_ == 0) {
      const bool opens = kLeast <= length && (mark == '~' || rest.find('`') == kNowhere);
      if (opens) mark_ = mark;
      if (opens) length_ = length;
      return false;
    }
    const bool closes =
        mark == mark_ && length_ <= length && rest.find_first_not_of(" \t") == kNowhere;
    if (closes) length_ = 0;
    return !closes;
  }

 private:
  static constexpr std::size_t kLeast = 3;
  char mark_ = '`';
  std::size_t length_ = 0;  // the open fence's; 0: none is open
};
}  // namespace

std::string program_lines(std::string_view words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  std::string quoted, bare;
  for (const char* gap = ""; !words.empty(); gap = " ") {
    std::string word(take_until(words, '\0'));
    const bool plain = !word.empty() && word.find_first_not_of(kPlain) == kNowhere;
    bare += gap;
    for (char& c : word) {
      const bool blank = c == ' ' || ('\t' <= c && c <= '\r');
      if (blank) c = ' ';
      bare.append(blank ? "\\ " : std::string_view(&c, 1));
    }
    quoted.append(gap).append(plain ? word : shell_quoted(word));
    if (*gap == '\0') bare.erase(0, bare.rfind('/') + 1);
  }
  return quoted == bare ? quoted : quoted + '\n' + bare;
}

bool HitBound::takes(const CommandHit& hit) {
  const bool takes = seen_.emplace(hit.pattern, hit.form).second || taken_ < most_;
  ++(takes ? taken_ : left_out_);
  return takes;
}

Result<DeniedCommands> DeniedCommands::compile(const std::vector<std::string>& patterns) {
  DeniedCommands out;
  for (const std::string& text : patterns) {
    PROCTOR_TRY(LinePattern pattern, LinePattern::compile(text));
    out.patterns_.emplace_back(text, std::move(pattern));
  }
  return out;
}

std::vector<CommandHit> DeniedCommands::find(std::string_view text, CommandForm form) const {
  std::vector<CommandHit> out;
  HitBound bound(form == CommandForm::kExecuted ? 0 : kHitsOfText);  // its lines are one program
  FenceScan fences;
  text = text.substr(0, kTextBytes);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const bool fenced = form == CommandForm::kText && fences.is_inside(line);
    for (const auto& [pattern, compiled] : patterns_) {
      const std::size_t match = compiled.find(line);
      if (match == kNowhere) continue;
      CommandHit hit{pattern, fenced ? CommandForm::kCode : form, at, segment_of(line, match)};
      if (bound.takes(hit)) out.push_back(std::move(hit));
    }
    at = end + 1;
  }
  return out;
}
}  // namespace proctor
