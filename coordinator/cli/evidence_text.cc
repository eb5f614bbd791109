#include "coordinator/cli/evidence_text.h"

#include <algorithm>
#include <fstream>

#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/trace/event.h"
#include "common/trace/evidence.h"
#include "common/trace/payloads.h"
#include "common/trace/run_report.h"
#include "coordinator/aggregate/format.h"

namespace proctor::cli {
namespace {
using aggregate::Table;

constexpr std::size_t kWordBytes = 60, kWhyBytes = 400;

std::string number(std::uint64_t n) {
  return std::to_string(n);
}

// "read_file x3, shell"
std::string tools_in(const Json& payload, const char* member) {
  const auto it = payload.find(member);
  if (it == payload.end() || !it->is_array()) return "";
  std::vector<std::pair<std::string, std::size_t>> names;
  for (const Json& tool : *it) {
    if (!tool.is_object()) continue;
    const std::string name = printable(text_in(tool, "name"), kWordBytes);
    const auto known = std::ranges::find(names, name, &std::pair<std::string, std::size_t>::first);
    if (known == names.end())
      names.emplace_back(name, 1);
    else
      ++known->second;
  }
  std::string out;
  for (const auto& [name, n] : names) {
    if (!out.empty()) out += ", ";
    out += name;
    if (1 < n) out += " x" + number(n);
  }
  return out;
}

std::string ended(const TracedCall& call) {
  if (!call.refused.is_null() && call.response.is_null())
    return "refused " + number(count_in(call.refused, "status"));
  if (call.response.is_null()) return "no end";
  std::string out = text_in(call.response, "settled");
  if (const std::string flag = text_in(call.response, "flag"); !flag.empty())
    out += " (" + flag + ")";
  if (const auto over = call.response.find("overrun"); over != call.response.end() && *over == true)
    out += ", overrun";
  if (0 < count_in(call.response, "replayed")) out += ", replayed";
  return printable(out, kWordBytes);
}

std::string why(const TracedCall& call) {
  const std::string refused = text_in(call.refused, "why");
  return printable(refused.empty() ? text_in(call.response, "why") : refused, kWhyBytes);
}

Json usage_of(const TracedCall& call) {
  const auto it = call.response.find("usage");
  return it != call.response.end() && it->is_object() ? *it : Json::object();
}

// "2 more were refused before they were calls, ...": why fewer are listed than are counted.
std::string unlisted_text(const UnlistedRefusals& unlisted) {
  if (unlisted.all == 0) return "";
  std::string out =
      "  " + number(unlisted.all) + " more refused before they were calls, which no event lists: ";
  const std::uint64_t others =
      unlisted.all - std::min(unlisted.all, unlisted.wrong_tokens + unlisted.unknown_routes);
  std::string parts;
  const auto part = [&](std::uint64_t n, const char* what) {
    if (0 < n) parts += (parts.empty() ? "" : ", ") + number(n) + " " + what;
  };
  part(unlisted.wrong_tokens, "without the run's token");
  part(unlisted.unknown_routes, "at an address that a gateway does not have");
  part(others,
       "after its last word (an envelope or a cap was used up), or with a head or a body "
       "that cannot be read");
  return out + parts + "\n";
}

// No call went through a gateway; an agent with a meter calls by another way.
std::string no_calls(std::uint64_t metered) {
  const std::string out = "  no call of a model went through the gateway";
  if (metered == 0) return out + "\n";
  return out + "; its meter granted " + number(metered) +
         ", and what each asked for and was charged are the events \"meter\" of its events.jsonl\n";
}

constexpr std::size_t kLines = 12, kTailBytes = std::size_t{8} << 10, kLineBytes = 400;

std::string how(const CheckReport& c) {
  // What never ran says so in its own reason.
  if (!c.outcome)
    return c.why.empty() ? std::string("did not run") : printable(c.why, limits::kDetailBytes);
  std::string out(to_string(*c.outcome));
  const std::string exit = "exit code " + std::to_string(c.exit_code);
  if (c.ended == "exited" && c.why != exit) out += ", " + exit;
  if (!c.why.empty()) out += ": " + printable(c.why, limits::kDetailBytes);
  return out;
}
}  // namespace

std::string calls_text(const TracedModels& told) {
  const std::vector<TracedCall>& calls = told.calls;
  if (calls.empty()) return no_calls(told.metered) + unlisted_text(told.unlisted);
  Table table({"call", "route", "ended", "tools", "status", "input", "cached", "output", "usd",
               "waited", "ms", "bytes"},
              4);
  std::string notes;
  for (const TracedCall& c : calls) {
    const Json usage = usage_of(c);
    const std::string name = (1 < c.life ? number(c.life) + "." : "") + number(c.number);
    table.add({name, printable(text_in(c.request.is_null() ? c.refused : c.request, "route"), 20),
               ended(c), tools_in(c.response, "tool_calls"), number(count_in(c.response, "status")),
               number(count_in(usage, "input_tokens")), number(count_in(usage, "cache_read")),
               number(count_in(usage, "output_tokens")),
               format_usd(MicroUsd::from_micros(static_cast<std::int64_t>(
                   std::min(count_in(c.response, "charged_micros"), kUsageCountMax)))),
               number(count_in(c.request, "waited_ms")),
               number(count_in(c.response, "wall_us") / 1'000),
               number(count_in(c.request, "bytes"))});
    if (const std::string said = why(c); !said.empty())
      notes += "  call " + name + ": " + said + "\n";
  }
  std::string out;
  table.append_to(out);
  notes += unlisted_text(told.unlisted);
  return notes.empty() ? out : out + "\n" + notes;
}

std::string cassette_list(const std::vector<CassetteCall>& calls) {
  Table table({"call", "run", "route", "model", "status", "request", "answer", "form"}, 4);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const CassetteCall& c = calls[i];
    table.add({number(i + 1), printable(c.run, kWhyBytes), printable(c.route, kWordBytes),
               printable(c.model, kWordBytes), std::to_string(c.status), number(c.request().size()),
               number(c.answer.size()), c.streamed ? "stream" : "whole"});
  }
  std::string out;
  table.append_to(out);
  return out;
}

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

std::vector<CheckReport> checks_in(const fs::path& attempt) {
  const Result<std::string> bytes = read_file(attempt / kReportFile, kReportBytes);
  if (!bytes.ok()) return {};
  Result<RunReport> report = parse_report(*bytes);
  return report.ok() ? std::move(report).value().checks : std::vector<CheckReport>{};
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
  PROCTOR_TRY(const auto again, events::last_in(attempt, events::kJudgedAgain));  // it counts them
  if (!again) return std::string();
  const auto& [nth, why] = *again;
  return "judged again from the same patch, " + counted(nth, "time") +
         ", the last time because of " + printable(why, limits::kDetailBytes);
}

std::uint64_t passes_before(const fs::path& attempt) {
  std::uint64_t out = 0;
  std::error_code ec;
  if (!fs::exists(attempt / repeated_dir(kAcceptanceDir, 1), ec)) return out;  // no log is read
  const Status read = each_event(attempt, [&](const TraceEvent& event) {
    if (event.type == events::kJudgedAgain.type) out = 0;  // from its first run again
    if (event.type == events::kRepeated.type)
      if (const auto told = events::kRepeated.read(event.payload)) out = std::get<0>(*told);
  });
  return read.ok() ? out : 0;
}
}  // namespace proctor::cli
