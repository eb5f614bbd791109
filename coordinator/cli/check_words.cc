#include "coordinator/cli/check_words.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/trace/evidence.h"
#include "common/trace/run_report.h"

namespace proctor::cli {
namespace {

constexpr std::size_t kLines = 12, kTailBytes = std::size_t{8} << 10, kLineBytes = 400;

std::vector<CheckReport> checks_in(const fs::path& attempt) {
  const Result<std::string> bytes = read_file(attempt / kReportFile, kReportBytes);
  if (!bytes.ok()) return {};
  Result<RunReport> report = parse_report(*bytes);
  return report.ok() ? std::move(report).value().checks : std::vector<CheckReport>{};
}

std::string how(const CheckReport& c) {
  constexpr std::string_view kUnrun = "did not run";
  // What never ran says so in its own reason.
  if (!c.outcome && c.why.starts_with(kUnrun)) return printable(c.why, limits::kDetailBytes);
  std::string out(c.outcome ? to_string(*c.outcome) : kUnrun);
  const std::string exit = "exit code " + std::to_string(c.exit_code);
  if (c.outcome && c.ended == "exited" && c.why != exit) out += ", " + exit;
  if (!c.why.empty()) out += ": " + printable(c.why, limits::kDetailBytes);
  return out;
}

}  // namespace

std::string last_lines_of(const fs::path& file, const std::string& indent) {
  std::error_code ec;
  if (!fs::is_regular_file(fs::symlink_status(file, ec))) return "";
  const std::uint64_t size = fs::file_size(file, ec);
  std::ifstream in(file, std::ios::binary);
  if (ec || !in) return "";
  const std::uint64_t from = kTailBytes < size ? size - kTailBytes : 0;
  in.seekg(static_cast<std::streamoff>(from));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
  if (0 < from && 1 < lines.size()) lines.erase(lines.begin());  // half a line
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  const std::size_t first = lines.size() - std::min(lines.size(), kLines);
  std::string out;
  for (std::size_t i = first; i < lines.size(); ++i)
    out += indent + printable(lines[i], kLineBytes) + "\n";
  return out;
}

std::string failing_checks(const fs::path& attempt) {
  std::string out;
  for (const CheckReport& c : checks_in(attempt)) {
    if (c.outcome == CheckOutcome::kPass) continue;
    out += "  check " + c.id + ": " + how(c) + "\n";
    const fs::path folder = attempt / kAcceptanceDir / check_dir_name(c.id);
    for (const std::string_view stream : {kStdoutFile, kStderrFile})
      if (const std::string lines = last_lines_of(folder / stream, "      "); !lines.empty())
        out.append("    its ").append(stream).append(" ends:\n").append(lines);
  }
  return out;
}

std::string unfinished_check(const fs::path& attempt) {
  for (const CheckReport& c : checks_in(attempt))
    if (c.outcome == CheckOutcome::kError)
      return "check " + c.id + ": " + printable(c.why, limits::kDetailBytes);
  return "";
}

Result<std::string> judged_again(const fs::path& attempt) {
  PROCTOR_TRY(const Json again, last_event(attempt, "acceptance.again"));  // it counts them
  if (!again.is_object() || !again.contains("nth") || !again["nth"].is_number_unsigned() ||
      !again.contains("why") || !again["why"].is_string())
    return std::string();
  return "judged again from the same patch, " + counted(again["nth"].get<std::uint64_t>(), "time") +
         ", the last time because of " +
         printable(again["why"].get<std::string>(), limits::kDetailBytes);
}

}  // namespace proctor::cli
