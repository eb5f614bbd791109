#include "worker/tools/tool_arguments.h"

#include <algorithm>
#include <vector>

#include "common/base/files.h"
#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor {
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
  using Kind = ToolParameter::Kind;
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
      if (value.is_string() && stage_named(value.string())) return ok_status();
      return wrong(p, "is none of read, write, test");
  }
  return ok_status();
}

// Of what was judged.
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
      return AdvanceStage{stage_named(f.text("to")).value_or(ToolStage::kRead), f.text("reason")};
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
