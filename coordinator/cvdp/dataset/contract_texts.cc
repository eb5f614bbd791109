#include "coordinator/cvdp/dataset/contract_texts.h"

#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "coordinator/cvdp/pycompat/python_text.h"

namespace proctor::cvdp {
namespace {

std::string in_single_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// Paths of the container become those of the workspace: /code is where the check begins, /src its
// folder src, /rundir its folder rundir.  For a shell, in pieces of single and double quotes.
std::string translated(std::string_view text) {
  struct Place {
    std::string_view from;
    std::string_view to;
  };
  static constexpr Place kPlaces[] = {
      {"/code", "\"$code\""}, {"/src", "\"$code\"/src"}, {"/rundir", "\"$code\"/rundir"}};
  std::string out;
  std::string literal;
  const auto flush = [&] {
    if (!literal.empty()) out += in_single_quotes(literal);
    literal.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const Place* found = nullptr;
    const bool begins =
        at == 0 || std::string_view("=: ,;\"'([").find(text[at - 1]) != std::string_view::npos;
    for (const Place& p : kPlaces) {
      const std::string_view rest = text.substr(at);
      if (begins && rest.starts_with(p.from) &&
          (rest.size() == p.from.size() ||
           std::string_view("/: ,;\"')]").find(rest[p.from.size()]) != std::string_view::npos))
        found = &p;
    }
    if (found == nullptr) {
      literal += text[at++];
    } else {
      flush();
      out += found->to;
      at += found->from.size();
    }
  }
  flush();
  return out.empty() ? "''" : out;
}

}  // namespace

std::string script_of(const ServicePlan& plan, const EnvPairs& environment) {
  std::string out = "#!/bin/sh\n# Service " + printable(plan.name) +
                    " of the problem's docker-compose.yml, by `proctor cvdp import`.\n"
                    "set -eu\ncode=$PWD\nmkdir -p rundir\nexport HOME=\"$code/rundir\"\n";
  for (const auto& [name, value] : environment)
    if (value) out += "export " + name + "=" + translated(*value) + "\n";
  out +=
      "cd " +
      (plan.working_dir.empty() ? std::string("\"$code/rundir\"") : translated(plan.working_dir)) +
      "\nexec";
  for (const auto* words : {&plan.entrypoint, &plan.command})
    for (const std::string& w : *words) out += " " + translated(w);
  return out + "\n";
}

std::string git_diff(const std::string& path, const std::string* before, const std::string& after) {
  std::string out = "diff --git a/" + path + " b/" + path + "\n";
  if (before == nullptr) out += "new file mode 100644\n";
  if (before == nullptr && after.empty()) return out + "index 0000000..e69de29\n";
  out += before == nullptr ? "--- /dev/null\n" : "--- a/" + path + "\n";
  out += "+++ b/" + path + "\n";
  const auto side = [](std::string_view text, char mark) {
    auto lines = split_at_newlines(text);
    const bool open = !lines.back().empty();
    if (!open) lines.pop_back();
    std::string body;
    for (const std::string_view line : lines) body += mark + std::string(line) + "\n";
    if (open) body += "\\ No newline at end of file\n";
    return std::pair(lines.size(), body);
  };
  const auto [old_lines, removed] = side(before == nullptr ? std::string_view() : *before, '-');
  const auto [new_lines, added] = side(after, '+');
  const auto range = [](std::size_t n) {
    return std::string(n == 0 ? "0," : "1,") + std::to_string(n);
  };
  return out + "@@ -" + range(old_lines) + " +" + range(new_lines) + " @@\n" + removed + added;
}

}  // namespace proctor::cvdp
