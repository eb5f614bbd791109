#include "worker/tools/tool_list.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/files.h"
#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor {
namespace {
using Kind = ToolParameter::Kind;
using P = ToolParameter;
namespace b = tool_bounds;

constexpr std::uint64_t kReasonBytes = 1'000, kPatternBytes = 1'000, kDepth = 3,
                        kOffsetMost = 100'000'000, kTimes = 10'000;

constexpr std::array<P, 3> kListDir{
    {{"path", Kind::kPath, false, 0, b::kPathBytes, "a folder; the top of the workspace if absent"},
     {"depth", Kind::kCount, false, 1, kDepth, "how many levels; 1 if absent"},
     {"limit", Kind::kCount, false, 1, b::kEntries, "how many entries at most"}}};
constexpr std::array<P, 3> kReadFile{
    {{"path", Kind::kPath, true, 1, b::kPathBytes, "a file"},
     {"offset", Kind::kCount, false, 1, kOffsetMost, "the first line; 1 if absent"},
     {"limit", Kind::kCount, false, 1, b::kLines, "how many lines at most"}}};
constexpr std::array<P, 5> kSearch{
    {{"pattern", Kind::kText, true, 1, kPatternBytes,
      "a regular expression that a line must match somewhere, without back-references"},
     {"path", Kind::kPath, false, 0, b::kPathBytes, "a file or folder; everything if absent"},
     {"glob", Kind::kText, false, 1, kPatternBytes, "only files whose path it covers: src/**/*.py"},
     {"literal", Kind::kFlag, false, 0, 0, "the pattern is a plain text"},
     {"limit", Kind::kCount, false, 1, b::kHits, "how many lines at most"}}};
constexpr std::array<P, 2> kShell{
    {{"command", Kind::kText, true, 1, b::kCommandBytes, "for sh -c, at the top of the workspace"},
     {"timeout_ms", Kind::kCount, false, 1, b::kWallMs, "ends it; the run's own limit if absent"}}};
constexpr std::array<P, 2> kAdvanceStage{
    {{"to", Kind::kStage, true, 0, 0, "the stage to go on to"},
     {"reason", Kind::kText, true, 1, kReasonBytes, "why, in a sentence"}}};
constexpr std::array<P, 2> kWriteFile{
    {{"path", Kind::kPath, true, 1, b::kPathBytes, "a file; folders above it are made"},
     {"content", Kind::kText, true, 0, b::kFileBytes, "all of it"}}};
constexpr std::array<P, 4> kEditFile{
    {{"path", Kind::kPath, true, 1, b::kPathBytes, "a file"},
     {"old_text", Kind::kText, true, 1, b::kFileBytes, "what is there, exactly"},
     {"new_text", Kind::kText, true, 0, b::kFileBytes, "what replaces it"},
     {"count", Kind::kCount, false, 1, kTimes, "how often old_text is there; 1 if absent"}}};
constexpr std::array<P, 1> kApplyPatch{{{"patch", Kind::kText, true, 1, b::kFileBytes,
                                         "a unified diff; all of it applies or nothing"}}};
constexpr std::array<P, 1> kRunTests{
    {{"name", Kind::kText, false, 1, kReasonBytes, "which; the first if absent"}}};
constexpr std::array<P, 1> kSubmit{
    {{"note", Kind::kText, false, 0, kReasonBytes, "what was done"}}};

constexpr std::array<ToolKind, 11> kKinds{{
    {Tool::kListDir, "list_dir", ToolStage::kRead, true, true,
     "Names, kinds and sizes of what is in a folder of the workspace.", kListDir},
    {Tool::kReadFile, "read_file", ToolStage::kRead, true, true,
     "Numbered lines of a file; of a binary file its size and digest.", kReadFile},
    {Tool::kSearch, "search", ToolStage::kRead, true, true,
     "Lines of files that match a pattern, as file:line: text.", kSearch},
    {Tool::kShell, "shell", ToolStage::kRead, false, true,
     "Runs a command in the sandbox. The workspace is read-only before the stage test. Nothing "
     "that "
     "it starts goes on after it.",
     kShell},
    {Tool::kAdvanceStage, "advance_stage", ToolStage::kRead, false, true,
     "Goes on to a later stage: read, then write, then test. Each allows what the ones before did.",
     kAdvanceStage},
    {Tool::kWriteFile, "write_file", ToolStage::kWrite, false, true,
     "Writes a file of the workspace as a whole.", kWriteFile},
    {Tool::kEditFile, "edit_file", ToolStage::kWrite, false, true,
     "Replaces a text of a file, which must be there exactly as often as said.", kEditFile},
    {Tool::kApplyPatch, "apply_patch", ToolStage::kWrite, false, true,
     "Applies a unified diff to the workspace.", kApplyPatch},
    {Tool::kRunTests, "run_tests", ToolStage::kTest, false, true,
     "Runs the developer's tests that the task names.", kRunTests},
    {Tool::kStatus,
     "status",
     ToolStage::kRead,
     false,
     false,
     "The stage, and what the run has left.",
     {}},
    {Tool::kSubmit, "submit", ToolStage::kRead, false, true,
     "Says that the work is done. Nothing is done after it.", kSubmit},
}};

Json schema_of(const ToolParameter& p) {
  Json out = {{"description", p.what}};
  switch (p.kind) {
    case Kind::kText:
    case Kind::kPath:
      out["type"] = "string";
      if (0 < p.least) out["minLength"] = p.least;
      break;
    case Kind::kCount:
      out["type"] = "integer";
      out["minimum"] = p.least;
      out["maximum"] = p.most;
      break;
    case Kind::kFlag:
      out["type"] = "boolean";
      break;
    case Kind::kStage:
      out["type"] = "string";
      out["enum"] = Json::array({"read", "write", "test"});
      break;
  }
  return out;
}
}  // namespace

const ToolKind* find_tool(std::string_view name) {
  const auto at = std::find_if(kKinds.begin(), kKinds.end(),
                               [&](const ToolKind& kind) { return kind.name == name; });
  return at == kKinds.end() ? nullptr : &*at;
}

Json tool_list_json() {
  Json out = Json::array();
  for (const ToolKind& kind : kKinds) {
    Json properties = Json::object(), required = Json::array();
    for (const ToolParameter& p : kind.parameters) {
      properties[std::string(p.name)] = schema_of(p);
      if (p.required) required.push_back(p.name);
    }
    Json schema = {
        {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
    if (!required.empty()) schema["required"] = std::move(required);
    out.push_back({{"name", kind.name},
                   {"description", kind.what},
                   {"inputSchema", std::move(schema)},
                   {"annotations", {{"readOnlyHint", kind.reads}, {"openWorldHint", false}}}});
  }
  return out;
}

namespace {
std::string quoted_stage(ToolStage stage) {
  return "\"" + std::string(to_string(stage)) + "\"";
}
}  // namespace

Json stage_json(const StageChange& change) {
  return {{"from", to_string(change.from)},
          {"to", to_string(change.to)},
          {"by", change.by == StageChange::By::kAgent ? "agent" : "breaker"},
          {"reason", change.reason}};
}

std::string ToolStages::suspended_lack(Millis now) const {
  if (!suspended_) return "";
  if (reads_since_ < rules_.reads)
    return "writing is suspended: look at the workspace first, " +
           std::to_string(rules_.reads - reads_since_) + " more calls that read";
  if (now < until_)
    return "writing is suspended for " +
           std::to_string(std::chrono::ceil<std::chrono::seconds>(until_ - now).count()) +
           " s more";
  return "";
}

ToolStages::Verdict ToolStages::judge(const ToolKind& kind, Millis now) {
  if (kind.from <= stage_) return {};
  const std::string what = std::string(kind.name) + " needs the stage " + quoted_stage(kind.from);
  if (rules_.last < kind.from)
    return {what + ", and this run never goes beyond " + quoted_stage(rules_.last), {}};
  if (std::string lack = suspended_lack(now); !lack.empty())
    return {what + ", and " + std::move(lack), {}};
  if (rules_.automatic) {
    auto change = advance(kind.from, std::string(kind.name) + " was called", now);
    if (change.ok()) return {"", std::move(change).value()};
  }
  return {what + ", and this run is in " + quoted_stage(stage_) +
              ": call advance_stage with {\"to\": " + quoted_stage(kind.from) +
              ", \"reason\": ...} first",
          {}};
}

Result<StageChange> ToolStages::advance(ToolStage to, std::string reason, Millis now) {
  if (to <= stage_)
    return Error{Errc::kInvalid, "this run is in the stage " + quoted_stage(stage_) + " already"};
  if (rules_.last < to)
    return Error{Errc::kInvalid, "this run never goes beyond " + quoted_stage(rules_.last)};
  if (std::string lack = suspended_lack(now); !lack.empty()) return Error{Errc::kInvalid, lack};
  suspended_ = false;
  return StageChange{std::exchange(stage_, to), to, StageChange::By::kAgent, std::move(reason)};
}

std::optional<StageChange> ToolStages::suspend(std::string reason, Millis now) {
  suspended_ = true;
  reads_since_ = 0;
  until_ = now + rules_.pause;
  if (stage_ == ToolStage::kRead) return std::nullopt;
  return StageChange{std::exchange(stage_, ToolStage::kRead), ToolStage::kRead,
                     StageChange::By::kBreaker, std::move(reason)};
}

namespace {
Error wrong(const ToolParameter& p, std::string_view what) {
  return {Errc::kInvalid, "\"" + std::string(p.name) + "\" " + std::string(what)};
}

std::string names_of(const ToolKind& kind) {
  std::string out;
  for (const ToolParameter& p : kind.parameters) {
    if (!out.empty()) out += ", ";
    out += p.name;
  }
  return out.empty() ? "nothing" : out;
}

Status judge_text(const ToolParameter& p, const Json& value) {
  if (!value.is_string()) return wrong(p, "is not a text");
  const auto& text = value.string();
  if (text.size() < p.least) return wrong(p, "is empty");
  if (p.most < text.size()) return wrong(p, "has more than " + std::to_string(p.most) + " bytes");
  return ok_status();
}

Status judge(const ToolParameter& p, const Json& value) {
  switch (p.kind) {
    case Kind::kText:
      return judge_text(p, value);
    case Kind::kPath: {
      PROCTOR_CHECK_OK(judge_text(p, value));
      const auto path = tool_path(value.string());
      if (!path.ok()) return wrong(p, path.error().detail);
      if (0 < p.least && path->empty()) return wrong(p, "is the workspace itself: name a file");
      return ok_status();
    }
    case Kind::kCount: {
      if (!value.is_number_unsigned()) return wrong(p, "is not a whole number");
      const auto n = value.get<std::uint64_t>();
      if (n < p.least || p.most < n)
        return wrong(
            p, "is not between " + std::to_string(p.least) + " and " + std::to_string(p.most));
      return ok_status();
    }
    case Kind::kFlag:
      return value.is_boolean() ? ok_status() : Status(wrong(p, "is neither true nor false"));
    case Kind::kStage:
      if (value.is_string() && from_word<ToolStage>(value.string())) return ok_status();
      return wrong(p, "is none of read, write, test");
  }
  return ok_status();
}

// The fields of what was judged.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}
  std::string text(const char* key) const {
    const auto at = json_.find(key);
    return at == json_.end() ? std::string() : at->get<std::string>();
  }
  std::optional<std::string> optional_text(const char* key) const {
    if (!json_.contains(key)) return std::nullopt;
    return text(key);
  }
  std::string path(const char* key) const { return tool_path(text(key)).value(); }
  std::uint64_t count(const char* key, std::uint64_t absent) const {
    const auto at = json_.find(key);
    return at == json_.end() ? absent : at->get<std::uint64_t>();
  }
  bool flag(const char* key) const {
    const auto at = json_.find(key);
    return at != json_.end() && at->get<bool>();
  }

 private:
  const Json& json_;
};

ToolArguments typed(Tool tool, const Fields& f) {
  switch (tool) {
    case Tool::kListDir:
      return ListDir{f.path("path"), f.count("depth", 1), f.count("limit", tool_bounds::kEntries)};
    case Tool::kReadFile:
      return ReadFile{f.path("path"), f.count("offset", 1), f.count("limit", tool_bounds::kLines)};
    case Tool::kSearch:
      return Search{f.text("pattern"), f.path("path"), f.text("glob"), f.flag("literal"),
                    f.count("limit", tool_bounds::kHits)};
    case Tool::kShell: {
      ShellCommand out{f.text("command"), std::nullopt};
      if (const std::uint64_t ms = f.count("timeout_ms", 0); 0 < ms) out.timeout_ms = ms;
      return out;
    }
    case Tool::kAdvanceStage:
      return AdvanceStage{from_word<ToolStage>(f.text("to")).value_or(ToolStage::kRead),
                          f.text("reason")};
    case Tool::kWriteFile:
      return WriteFile{f.path("path"), f.text("content")};
    case Tool::kEditFile:
      return EditFile{f.path("path"), f.text("old_text"), f.text("new_text"), f.count("count", 1)};
    case Tool::kApplyPatch:
      return ApplyDiff{f.text("patch")};
    case Tool::kRunTests:
      return RunTests{f.optional_text("name")};
    case Tool::kStatus:
      return AskStatus{};
    case Tool::kSubmit:
      return Submit{f.text("note")};
  }
  return AskStatus{};
}
}  // namespace

Result<std::string> tool_path(std::string_view said) {
  if (said.starts_with('/'))
    return Error{Errc::kInvalid, "is absolute: name it from the top of the workspace"};
  if (!is_utf8(said) || said.find('\0') != std::string_view::npos)
    return Error{Errc::kInvalid, "is no path"};
  std::string out;
  while (!said.empty()) {
    const std::string_view part = take_until(said, '/');
    if (part.empty() || part == ".") continue;
    if (part == "..") return Error{Errc::kInvalid, "leaves the workspace: .. is not followed"};
    if (part == ".git") return Error{Errc::kInvalid, "is in .git, which is no part of the work"};
    if (!out.empty()) out += '/';
    out += part;
  }
  return out;
}

Result<ToolArguments> read_tool_arguments(const ToolKind& kind, const Json& arguments) {
  if (!arguments.is_object()) return Error{Errc::kInvalid, "the arguments are no object"};
  for (auto at = arguments.begin(); at != arguments.end(); ++at) {
    const bool known = std::any_of(kind.parameters.begin(), kind.parameters.end(),
                                   [&](const ToolParameter& p) { return p.name == at.key(); });
    if (!known)
      return Error{Errc::kInvalid, std::string(kind.name) + " takes no \"" +
                                       printable(at.key(), 60) + "\"; it takes " + names_of(kind)};
  }
  for (const ToolParameter& p : kind.parameters) {
    const auto at = arguments.find(std::string(p.name));
    if (at == arguments.end()) {
      if (p.required) return wrong(p, "is missing");
      continue;
    }
    PROCTOR_CHECK_OK(judge(p, *at));
  }
  return typed(kind.tool, Fields(arguments));
}
}  // namespace proctor
