#include "worker/tools/tool_list.h"

#include <algorithm>
#include <array>
#include <string>

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

std::string_view to_string(ToolStage stage) {
  switch (stage) {
    case ToolStage::kRead:
      return "read";
    case ToolStage::kWrite:
      return "write";
    case ToolStage::kTest:
      return "test";
  }
  return "";
}

std::optional<ToolStage> stage_named(std::string_view name) {
  for (const ToolStage stage : {ToolStage::kRead, ToolStage::kWrite, ToolStage::kTest})
    if (name == to_string(stage)) return stage;
  return std::nullopt;
}

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

}  // namespace proctor
