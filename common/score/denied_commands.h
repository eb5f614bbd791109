#pragma once
// The command patterns of a contract (policy.commands.deny), matched line by line on every form in
// which a command passes the worker (R099, R102, R152; docs/tools.md, "Command patterns").  Pure:
// the same text has the same hits (R104).  Any thread, but for HitBound.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/line_pattern.h"
#include "common/base/result.h"
#include "common/base/words.h"

namespace proctor {
enum class CommandForm {
  kText,     // words of a model
  kCode,     // words of a model too: inside a fence, or what it would have a tool do
  kTool,     // a command that a tool of the worker was handed
  kExecuted  // the words of a program that ran
};
constexpr auto words(CommandForm) {
  using enum CommandForm;
  return std::to_array<Word<CommandForm>>(
      {{"text", kText}, {"code", kCode}, {"tool call", kTool}, {"executed", kExecuted}});
}

struct CommandHit {
  std::string pattern;
  CommandForm form = CommandForm::kText;
  std::size_t offset = 0;  // in the text, in bytes, of the line that matches
  std::string segment;     // that line, printable, 400 bytes of it at most, the match among them
  friend bool operator==(const CommandHit&, const CommandHit&) = default;
};

// Which hits are told: the first so many, and beyond them the first of each pattern in each form,
// so that many hits of one hide no other.  One thread.
class HitBound {
 public:
  explicit HitBound(std::size_t most) : most_(most) {}
  bool takes(const CommandHit& hit);
  std::uint64_t left_out() const { return left_out_; }

 private:
  std::uint64_t most_, taken_ = 0, left_out_ = 0;
  std::set<std::pair<std::string, CommandForm>> seen_;
};

// A program by its words, which have a NUL behind each, on one line or two: as a shell would take
// them, in quotes where that needs them, and, where that differs, by its name without a folder and
// with blanks as "\ ", so that neither a folder nor a quote hides the beginning of a word.
std::string program_lines(std::string_view words);

class DeniedCommands {
 public:
  // Bytes of one text that are read, and hits of it (HitBound).
  static constexpr std::size_t kTextBytes = std::size_t{1} << 20, kHitsOfText = 50;
  // Hits of one run that are told (HitBound).
  static constexpr std::size_t kHitsOfRun = 200;

  // Errors: kInvalid, a pattern cannot be read.
  static Result<DeniedCommands> compile(const std::vector<std::string>& patterns);

  // A text of the form kText is Markdown: its lines inside a fence are kCode, up to its end where
  // the fence is never closed.  Ordered by line, then by pattern.
  std::vector<CommandHit> find(std::string_view text, CommandForm form) const;

 private:
  std::vector<std::pair<std::string, LinePattern>> patterns_;
};
}  // namespace proctor
