#include "worker/tools/tool_list.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <utility>
#include <vector>

#include "common/base/fields.h"
#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor {
namespace {
namespace b = tool_bounds;

constexpr std::uint64_t kReasonBytes = 1'000, kPatternBytes = 1'000, kDepth = 3,
                        kOffsetMost = 100'000'000, kTimes = 10'000;

struct ToolParameter {
  bool required;
  std::uint64_t least, most;  // of a count; of a text its bytes
  std::string_view what;
};

// A call's arguments, as a model reads of them and writes them (fields.h).  A visitor `v` has
//   v(name, member, parameter)        a text, count, flag or stage
//   v.place(name, member, parameter)  a path
void fields(auto& v, Is<ListDir> auto& x) {
  v.place("path", x.path,
          {false, 0, b::kPathBytes, "a folder; the top of the workspace if absent"});
  v("depth", x.depth, {false, 1, kDepth, "how many levels; 1 if absent"});
  v("limit", x.limit, {false, 1, b::kEntries, "how many entries at most"});
}
void fields(auto& v, Is<ReadFile> auto& x) {
  v.place("path", x.path, {true, 1, b::kPathBytes, "a file"});
  v("offset", x.offset, {false, 1, kOffsetMost, "the first line; 1 if absent"});
  v("limit", x.limit, {false, 1, b::kLines, "how many lines at most"});
}
void fields(auto& v, Is<Search> auto& x) {
  v("pattern", x.pattern,
    {true, 1, kPatternBytes,
     "a regular expression that a line must match somewhere, without back-references"});
  v.place("path", x.path, {false, 0, b::kPathBytes, "a file or folder; everything if absent"});
  v("glob", x.glob, {false, 1, kPatternBytes, "only files whose path it covers: src/**/*.py"});
  v("literal", x.literal, {false, 0, 0, "the pattern is a plain text"});
  v("limit", x.limit, {false, 1, b::kHits, "how many lines at most"});
}
void fields(auto& v, Is<ShellCommand> auto& x) {
  v("command", x.command, {true, 1, b::kCommandBytes, "for sh -c, at the top of the workspace"});
  v("timeout_ms", x.timeout_ms, {false, 1, b::kWallMs, "ends it; the run's own limit if absent"});
}
void fields(auto& v, Is<AdvanceStage> auto& x) {
  v("to", x.to, {true, 0, 0, "the stage to go on to"});
  v("reason", x.reason, {true, 1, kReasonBytes, "why, in a sentence"});
}
void fields(auto& v, Is<WriteFile> auto& x) {
  v.place("path", x.path, {true, 1, b::kPathBytes, "a file; folders above it are made"});
  v("content", x.content, {true, 0, b::kFileBytes, "all of it"});
}
void fields(auto& v, Is<EditFile> auto& x) {
  v.place("path", x.path, {true, 1, b::kPathBytes, "a file"});
  v("old_text", x.old_text, {true, 1, b::kFileBytes, "what is there, exactly"});
  v("new_text", x.new_text, {true, 0, b::kFileBytes, "what replaces it"});
  v("count", x.count, {false, 1, kTimes, "how often old_text is there; 1 if absent"});
}
void fields(auto& v, Is<ApplyDiff> auto& x) {
  v("patch", x.patch, {true, 1, b::kFileBytes, "a unified diff; all of it applies or nothing"});
}
void fields(auto& v, Is<RunTests> auto& x) {
  v("name", x.name, {false, 1, kReasonBytes, "which; the first if absent"});
}
void fields(auto&, Is<AskStatus> auto&) {}
void fields(auto& v, Is<Submit> auto& x) {
  v("note", x.note, {false, 0, kReasonBytes, "what was done"});
}

const std::array<ToolKind, 11>& kinds() {
  static const std::array<ToolKind, 11> all{{
      {Tool::kListDir, "list_dir", ToolStage::kRead, true, true,
       "Names, kinds and sizes of what is in a folder of the workspace.", ListDir{}},
      {Tool::kReadFile, "read_file", ToolStage::kRead, true, true,
       "Numbered lines of a file; of a binary file its size and digest.", ReadFile{}},
      {Tool::kSearch, "search", ToolStage::kRead, true, true,
       "Lines of files that match a pattern, as file:line: text.", Search{}},
      {Tool::kShell, "shell", ToolStage::kRead, false, true,
       "Runs a command in the sandbox. The workspace is read-only before the stage test. Nothing "
       "that "
       "it starts goes on after it.",
       ShellCommand{}},
      {Tool::kAdvanceStage, "advance_stage", ToolStage::kRead, false, true,
       "Goes on to a later stage: read, then write, then test. Each allows what the ones before "
       "did.",
       AdvanceStage{}},
      {Tool::kWriteFile, "write_file", ToolStage::kWrite, false, true,
       "Writes a file of the workspace as a whole.", WriteFile{}},
      {Tool::kEditFile, "edit_file", ToolStage::kWrite, false, true,
       "Replaces a text of a file, which must be there exactly as often as said.", EditFile{}},
      {Tool::kApplyPatch, "apply_patch", ToolStage::kWrite, false, true,
       "Applies a unified diff to the workspace.", ApplyDiff{}},
      {Tool::kRunTests, "run_tests", ToolStage::kTest, false, true,
       "Runs the developer's tests that the task names.", RunTests{}},
      {Tool::kStatus, "status", ToolStage::kRead, false, false,
       "The stage, and what the run has left.", AskStatus{}},
      {Tool::kSubmit, "submit", ToolStage::kRead, false, true,
       "Says that the work is done. Nothing is done after it.", Submit{}},
  }};
  return all;
}

// Writes the schema of a tool's arguments.
class SchemaWriter {
 public:
  template <class T>
  void operator()(const char* name, const T& member, const ToolParameter& p) {
    Json out = {{"description", p.what}};
    if constexpr (requires { member.value(); }) {
      return (*this)(name, typename T::value_type{}, p);
    } else if constexpr (std::same_as<T, bool>) {
      out["type"] = "boolean";
    } else if constexpr (std::same_as<T, ToolStage>) {
      out.update({{"type", "string"}, {"enum", Json::array()}});
      for (const auto& [word, stage] : kWordsOf<T>) out["enum"].push_back(word);
    } else if constexpr (std::integral<T>) {
      out.update({{"type", "integer"}, {"minimum", p.least}, {"maximum", p.most}});
    } else {
      out["type"] = "string";
      if (0 < p.least) out["minLength"] = p.least;
    }
    properties_[name] = std::move(out);
    if (p.required) required_.push_back(name);
  }
  void place(const char* name, const std::string& member, const ToolParameter& p) {
    (*this)(name, member, p);
  }
  Json take() {
    Json out = {{"type", "object"},
                {"properties", std::move(properties_)},
                {"additionalProperties", false}};
    if (!required_.empty()) out["required"] = std::move(required_);
    return out;
  }

 private:
  Json properties_ = Json::object(), required_ = Json::array();
};
}  // namespace

const ToolKind* find_tool(std::string_view name) {
  const auto at = std::ranges::find(kinds(), name, &ToolKind::name);
  return at == kinds().end() ? nullptr : &*at;
}

Json tool_list_json() {
  Json out = Json::array();
  for (const ToolKind& kind : kinds()) {
    SchemaWriter schema;
    std::visit([&](const auto& arguments) { fields(schema, arguments); }, kind.arguments);
    out.push_back({{"name", kind.name},
                   {"description", kind.what},
                   {"inputSchema", schema.take()},
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

std::string ToolStages::lack_of(const ToolKind& kind, Millis now) const {
  if (kind.from <= stage_) return "";
  const std::string needs = quoted_stage(kind.from);
  const std::string what = std::string(kind.name) + " needs the stage " + needs + ", and ";
  if (rules_.last < kind.from)
    return what + "this run never goes beyond " + quoted_stage(rules_.last);
  if (std::string lack = suspended_lack(now); !lack.empty()) return what + lack;
  return what + "this run is in " + quoted_stage(stage_) +
         ": call advance_stage with {\"to\": " + needs + ", \"reason\": ...} first";
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
// Reads and judges what a model wrote.  The first problem stays.
class ArgumentReader {
 public:
  explicit ArgumentReader(const Json& json) : json_(json) {}

  template <class T>
  void operator()(const char* name, T& out, const ToolParameter& p) {
    names_.emplace_back(name);
    if (const auto at = json_.find(name); at != json_.end())
      read(*at, name, out, p);
    else if (p.required)
      wrong(name, "is missing");
  }
  void place(const char* name, std::string& out, const ToolParameter& p) {
    (*this)(name, out, p);
    auto path = tool_path(out);
    if (!path.ok()) return wrong(name, path.error().detail);
    out = std::move(path).value();
    if (0 < p.least && out.empty()) wrong(name, "is the workspace itself: name a file");
  }
  Status finish(std::string_view tool) const {
    for (auto at = json_.begin(); at != json_.end(); ++at)
      if (std::ranges::find(names_, at.key()) == names_.end())
        return Error{Errc::kInvalid, std::string(tool) + " takes no \"" + printable(at.key(), 60) +
                                         "\"; it takes " + names_listed()};
    return problem_.empty() ? ok_status() : Error{Errc::kInvalid, problem_};
  }

 private:
  template <class T>
  void read(const Json& value, const char* name, T& out, const ToolParameter& p) {
    if constexpr (requires { out.value(); }) {
      read(value, name, out.emplace(), p);
    } else if constexpr (std::same_as<T, bool>) {
      if (!value.is_boolean()) return wrong(name, "is neither true nor false");
      out = value.boolean();
    } else if constexpr (std::same_as<T, ToolStage>) {
      const auto stage = value.is_string() ? from_word<T>(value.string()) : std::nullopt;
      if (!stage) return wrong(name, "is none of read, write, test");
      out = *stage;
    } else if constexpr (std::integral<T>) {
      if (!value.is_number_unsigned()) return wrong(name, "is not a whole number");
      out = value.template get<T>();
      if (out < p.least || p.most < out)
        wrong(name, "is not between " + std::to_string(p.least) + " and " + std::to_string(p.most));
    } else {
      if (!value.is_string()) return wrong(name, "is not a text");
      out = value.string();
      if (out.size() < p.least) return wrong(name, "is empty");
      if (p.most < out.size()) wrong(name, "has more than " + std::to_string(p.most) + " bytes");
    }
  }
  void wrong(const char* name, std::string_view what) {
    if (problem_.empty()) problem_.append("\"").append(name).append("\" ").append(what);
  }
  std::string names_listed() const {
    std::string out;
    for (const std::string_view name : names_) out.append(out.empty() ? "" : ", ").append(name);
    return out.empty() ? "nothing" : out;
  }

  const Json& json_;
  std::vector<std::string_view> names_{};
  std::string problem_{};
};
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
  ToolArguments out = kind.arguments;
  ArgumentReader reader(arguments);
  std::visit([&](auto& members) { fields(reader, members); }, out);
  PROCTOR_CHECK_OK(reader.finish(kind.name));
  return out;
}
}  // namespace proctor
