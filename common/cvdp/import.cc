#include "common/cvdp/import.h"

#include <algorithm>

#include "common/base/files.h"
#include "common/base/text.h"
#include "common/cvdp/json_writer.h"
#include "common/cvdp/patch.h"
#include "common/cvdp/python_text.h"
#include "common/cvdp/yaml.h"

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

bool is_variable(std::string_view name) {
  return !name.empty() && (name[0] < '0' || '9' < name[0]) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
                  c == '_';
         });
}

// A whole file against another as git reads it, every line replaced.
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

class ContractMaker {
 public:
  ContractMaker(const Record& record, const ImportSettings& settings)
      : record_(record), settings_(settings), id_(contract_id(record)) {}

  Result<std::vector<ContractFile>> run(const std::string& repository, const std::string& commit) {
    if (is_comprehension(category_number(record_.category)))
      return Error{Errc::kInvalid, "answers in words are scored by a text metric, not by a check"};
    if (needs_eda(record_.value)) return Error{Errc::kInvalid, "needs licensed tools"};
    if (record_.id.heavy)
      return Error{Errc::kInvalid, "its context is a commit of another repository"};
    PROCTOR_TRY(const Array checks, checks_of());
    Object contract = head(repository, commit);
    contract.append("checks", checks);
    contract.append("acceptance_files", acceptance_files());
    Array protected_globs = {Value("src/**"), Value("prompt.json")};
    Object policy;
    policy.append("protected", std::move(protected_globs));
    contract.append("policy", std::move(policy));
    PROCTOR_CHECK_OK(reference(contract));
    files_.insert(files_.begin(), {id_ + ".yaml", write_yaml(Value(std::move(contract))), 0644});
    return std::move(files_);
  }

 private:
  Object head(const std::string& repository, const std::string& commit) {
    Object c;
    c.append("id", id_);
    c.append("title", record_.id.text);
    c.append("type", "feature");
    put("briefing.md", *prompt_of(record_));
    c.append("briefing_file", id_ + "/briefing.md");
    Object strata;
    strata.append("language", "verilog");
    strata.append("runtime", "simulator");
    strata.append("dependencies", "none");
    strata.append("category", record_.category);
    strata.append("difficulty", record_.difficulty);
    strata.append("dataset_kind", to_string(record_.shape));
    c.append("strata", std::move(strata));
    Object r;
    r.append("source", repository);
    r.append("commit", commit);
    c.append("repository", std::move(r));
    if (!settings_.image.empty()) {
      Object e;
      e.append("image", settings_.image);
      c.append("environment", std::move(e));
    }
    return c;
  }

  void put(const std::string& name, std::string bytes, unsigned mode = 0644) {
    files_.push_back({id_ + "/" + name, std::move(bytes), mode});
  }

  Result<Array> checks_of() {
    const Object* harness = harness_files(record_);
    const std::string* compose =
        harness == nullptr ? nullptr : text_at(*harness, "docker-compose.yml");
    if (compose == nullptr) return Error{Errc::kInvalid, "has no docker-compose.yml"};
    ComposeSettings settings;
    settings.names = settings_.names;
    PROCTOR_TRY(const ComposeFile file, normalise_compose(*compose, settings));
    PROCTOR_TRY(const std::vector<ServicePlan> plans, plan_services(file.value));
    Array out;
    for (const ServicePlan& plan : plans) {
      if (!plan.depends_on.empty())
        return Error{Errc::kInvalid, "its services depend on each other"};
      if (plan.command.empty() && plan.entrypoint.empty())
        return Error{Errc::kInvalid, "its command is in the image"};
      PROCTOR_TRY(const EnvPairs environment, environment_of(plan, *harness));
      const std::string name = "service-" + std::to_string(out.size() + 1) + ".sh";
      put(name, script_of(plan, environment), 0755);
      Object check;
      check.append("id", "service-" + std::to_string(out.size() + 1));
      check.append("script", id_ + "/" + name);
      check.append("kind", "integration");
      check.append("timeout", "10m");  // upstream's own
      out.push_back(std::move(check));
    }
    return out;
  }

  Result<EnvPairs> environment_of(const ServicePlan& plan, const Object& harness) const {
    EnvPairs out;
    for (const std::string& path : plan.env_files) {
      std::string key = path;
      while (key.starts_with("./")) key.erase(0, 2);
      const std::string* text = text_at(harness, key);
      if (text == nullptr)
        return Error{Errc::kInvalid,
                     "its env_file \"" + printable(path) + "\" is not in the harness"};
      PROCTOR_TRY(const EnvPairs pairs, parse_env_file(substitute(*text, settings_.names)));
      out.insert(out.end(), pairs.begin(), pairs.end());
    }
    out.insert(out.end(), plan.environment.begin(), plan.environment.end());
    for (const auto& [name, value] : out)
      if (!is_variable(name))
        return Error{Errc::kInvalid, "\"" + printable(name) + "\" is no variable's name"};
    return out;
  }

  // What the agent must not see until it is judged.
  Array acceptance_files() {
    Array out;
    for (const Member& m : *harness_files(record_)) {
      if (!m.key.starts_with("src/") || m.value.string() == nullptr) continue;
      put("harness/" + m.key, substitute(*m.value.string(), settings_.names));
      Object o;
      o.append("from", id_ + "/harness/" + m.key);
      o.append("to", m.key);
      out.push_back(std::move(o));
    }
    return out;
  }

  Status reference(Object& contract) {
    if (record_.redacted || solution_files(record_) == nullptr) return ok_status();
    std::string diff;
    for (const Member& m : *solution_files(record_)) {
      const std::string* text = m.value.string();
      const std::string* before =
          context_files(record_) == nullptr ? nullptr : text_at(*context_files(record_), m.key);
      if (text == nullptr) return ok_status();
      std::string after = *text;
      if (record_.shape == Shape::kAgentic) {
        PROCTOR_TRY(Applied applied,
                    apply_patch(before == nullptr ? std::string_view() : *before, *text));
        after = std::move(applied.text);
      }
      if (before == nullptr || *before != after) diff += git_diff(m.key, before, after);
    }
    if (diff.empty()) return ok_status();
    put("reference.patch", std::move(diff));
    contract.append("reference_patch", id_ + "/reference.patch");
    return ok_status();
  }

  const Record& record_;
  const ImportSettings& settings_;
  std::string id_;
  std::vector<ContractFile> files_;
};

}  // namespace

Result<std::vector<ContractFile>> make_contract(const Record& record, const std::string& repository,
                                                const std::string& commit,
                                                const ImportSettings& settings) {
  if (prompt_of(record) == nullptr) return Error{Errc::kInvalid, "has no prompt"};
  return ContractMaker(record, settings).run(repository, commit);
}

std::string contract_id(const Record& record) {
  std::string out = record.id.text;
  for (char& c : out)
    if ('A' <= c && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

Result<std::string> commit_stream(const Record& record, std::uint64_t mark) {
  const std::string message = record.id.text + "\n";
  std::string out = "commit refs/heads/" + contract_id(record) + "\nmark :" + std::to_string(mark) +
                    "\ncommitter cvdp <cvdp@localhost> 0 +0000\ndata " +
                    std::to_string(message.size()) + "\n" + message;
  const auto file = [&](const std::string& path, const std::string& bytes) -> Status {
    if (!is_safe_relative(path) || path.find_first_of("\n\"\\") != std::string::npos ||
        path == ".git" || path.starts_with(".git/"))
      return Error{Errc::kInvalid, "\"" + printable(path) + "\" cannot be in a commit"};
    out += "M 100644 inline \"" + path + "\"\ndata " + std::to_string(bytes.size()) + "\n" + bytes +
           "\n";
    return ok_status();
  };
  if (const Object* context = context_files(record))
    for (const Member& m : *context)
      PROCTOR_CHECK_OK(file(m.key, m.value.string() == nullptr ? "" : *m.value.string()));
  Object prompt;
  prompt.append("prompt", prompt_of(record) == nullptr ? Value() : Value(*prompt_of(record)));
  PROCTOR_CHECK_OK(file("prompt.json", write_json(Value(std::move(prompt)))));
  return out;
}

}  // namespace proctor::cvdp
