#include "coordinator/cvdp/dataset/import.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <set>

#include "common/base/files.h"
#include "common/base/text.h"
#include "coordinator/cvdp/dataset/transform.h"
#include "coordinator/cvdp/pycompat/python_text.h"
#include "coordinator/cvdp/pycompat/yaml.h"

namespace proctor::cvdp {
namespace {
struct Guidance {
  int category;
  std::string_view task;
  std::string_view content;
};
constexpr std::array<Guidance, 13> kGuidance = {{
    {2, "completing RTL code", "the completed RTL code"},
    {3, "writing RTL code from a specification", "RTL code"},
    {4, "modifying RTL code", "the modified RTL code"},
    {5, "writing RTL code from a specification with existing modules", "RTL code"},
    {6, "matching RTL code and its specification", "a text"},
    {7, "improving RTL code for lint or quality of results", "the improved RTL code"},
    {8, "matching a test bench and its test plan", "a text"},
    {9, "answering a question on RTL code", "a text"},
    {10, "answering a question on a test bench", "a text"},
    {12, "writing test bench stimulus from a test plan", "test bench code"},
    {13, "writing test bench checkers from a test plan", "test bench code"},
    {14, "writing assertions from a test plan", "test bench code with assertions"},
    {16, "finding and repairing a fault of RTL code", "the repaired RTL code"},
}};

constexpr std::string_view kRole =
    "You are an assistant for hardware design and verification. A project keeps its files in "
    "folders: "
    "rtl/* holds RTL code, verif/* holds test benches and what belongs to them, docs/* holds "
    "documentation. Put every file into the folder where it belongs.";

std::string system_prompt(const Guidance& g, AnswerForm form) {
  std::string out =
      fmt::format("{}\n\nYou are solving a problem of the kind '{}': return only {}.\n", kRole,
                  g.task, g.content);
  if (form == AnswerForm::kJson)
    out += fmt::format(
        "Answer in one of these JSON forms:\n{}\nor\n{}\nThe JSON must be correct: escape quotes, "
        "backslashes and line ends inside texts.\n",
        kCodeSchema, kResponseSchema);
  return out;
}

std::string closing(const std::vector<std::string>& expected, bool in_words) {
  if (expected.size() == 1)
    return "Answer in plain text, not in JSON: your answer becomes the file " + expected.front() +
           " as it is.\n";
  if (in_words) return "Answer in the form { \"response\": \"<your answer here>\" }.\n";
  if (expected.empty()) return "Give your answer.\n";
  return fmt::format("Name the files of your answer as follows: ['{}'].\n",
                     fmt::join(expected, "', '"));
}

std::string fenced(std::string_view text) {
  return fmt::format("```\n{}\n```\n", text);
}
}  // namespace

Result<SingleShotTask> prompt_for(const Record& record) {
  const int category = category_number(record.category);
  const auto* const guidance = std::ranges::find(kGuidance, category, &Guidance::category);
  if (guidance == kGuidance.end())
    return invalid("no model is asked about category {}", record.category);
  const std::string* task = prompt_of(record);
  if (task == nullptr) return invalid("the record has no prompt");
  SingleShotTask out;
  const bool in_words = is_comprehension(category);
  if (const Object* solution = solution_files(record); solution != nullptr && !in_words)
    for (const Member& m : *solution) out.expected.push_back(m.key);
  out.system = system_prompt(*guidance, form_for(out.expected.size()));
  if (const Object* context = context_files(record))
    for (const Member& m : *context)
      if (const std::string* text = m.value.string())
        out.user += fmt::format("\nThe file {} holds:\n{}", m.key, fenced(*text));
  out.user += fmt::format("\nThe task is: {}\n{}", *task, closing(out.expected, in_words));
  return out;
}

namespace {
SingleShotTask judge_task(const JudgeCase& judged) {
  SingleShotTask out;
  out.answer = AnswerKind::kJudgement;
  out.system =
      "You are an expert who grades answers. Give a score from 0.0 to 1.0 that says how well the "
      "candidate answers the original question, compared with the reference. Judge it by:\n"
      "1. relevance to the question\n2. nearness of its meaning to the reference\n"
      "3. completeness\n4. correctness\n5. style and clarity\n"
      "Answer with a JSON object that has the members score (a number) and reasoning (a text).";
  out.user = fmt::format(
      "Grade the candidate against the reference for this problem.\n\nProblem:\n{}\nReference:\n{}"
      "\nCandidate:\n{}\nJudge it relative to the problem. For example:\n"
      "{{\"score\": 0.85, \"reasoning\": \"covers all points but one\"}}",
      fenced(judged.problem), fenced(judged.reference), fenced(judged.candidate));
  return out;
}

// Paths of the container become those of the workspace: /code is where the check begins, /src its
// folder src, /rundir its folder rundir.  For a shell, in pieces of single and double quotes.
std::string translated(std::string_view text) {
  struct Place {
    std::string_view from, to;
  };
  static constexpr Place kPlaces[] = {
      {"/code", "\"$code\""}, {"/src", "\"$code\"/src"}, {"/rundir", "\"$code\"/rundir"}};
  std::string out;
  std::string literal;
  const auto flush = [&] {
    if (!literal.empty()) out += shell_quoted(literal);
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

// Texts of a contract that is made of a problem: a service's command as a shell script for the
// contract's own sandbox, and a file's change as git would write it.  Pure.
std::string script_of(const ServicePlan& plan, const EnvPairs& environment) {
  std::string out = fmt::format(
      "#!/bin/sh\n# Service {} of the problem's docker-compose.yml, by `proctor cvdp import`.\n"
      "set -eu\ncode=$PWD\nmkdir -p rundir\nexport HOME=\"$code/rundir\"\n",
      printable(plan.name));
  for (const auto& [name, value] : environment)
    if (value) out += fmt::format("export {}={}\n", name, translated(*value));
  out += fmt::format("cd {}\nexec",
                     plan.working_dir.empty() ? "\"$code/rundir\"" : translated(plan.working_dir));
  for (const auto* words : {&plan.entrypoint, &plan.command})
    for (const std::string& w : *words) out += " " + translated(w);
  return out + "\n";
}

// A whole file against another, every line replaced.  `before`: null where there was none.
std::string git_diff(const std::string& path, const std::string* before, const std::string& after) {
  std::string out = fmt::format("diff --git a/{0} b/{0}\n{1}", path,
                                before == nullptr ? "new file mode 100644\n" : "");
  if (before == nullptr && after.empty()) return out + "index 0000000..e69de29\n";
  out += fmt::format("--- {}\n+++ b/{}\n", before == nullptr ? "/dev/null" : "a/" + path, path);
  const auto side = [](std::string_view text, char mark) {
    auto lines = split(text, '\n');
    const bool open = !lines.back().empty();
    if (!open) lines.pop_back();
    std::string body;
    for (const std::string_view line : lines) body += fmt::format("{}{}\n", mark, line);
    if (open) body += "\\ No newline at end of file\n";
    return std::pair(lines.size(), body);
  };
  const auto [old_lines, removed] = side(before == nullptr ? std::string_view() : *before, '-');
  const auto [new_lines, added] = side(after, '+');
  return out + fmt::format("@@ -{},{} +{},{} @@\n{}{}", old_lines == 0 ? 0 : 1, old_lines,
                           new_lines == 0 ? 0 : 1, new_lines, removed, added);
}

bool is_variable(std::string_view name) {
  return !name.empty() && !is_digit(name[0]) && std::ranges::all_of(name, is_word_byte);
}

constexpr std::size_t kServicesMost = 16;  // of a contract

// As contracts name their services.
bool is_host_label(std::string_view name) {
  const auto plain = [](char c) { return ('a' <= c && c <= 'z') || is_digit(c); };
  return !name.empty() && name.size() < 64 && plain(name.front()) && plain(name.back()) &&
         name != "localhost" && name != "sandbox" &&
         std::ranges::all_of(name, [&](char c) { return plain(c) || c == '-'; });
}

// Whether there is an answer; how good it is, its score says.
Array answered(const std::string& file) {
  return {Value(object_of("id", "answered", "command", "test -s " + file, "kind", "script",
                          "timeout", "60s"))};
}

Object strata_of(std::string_view category, std::string_view difficulty, std::string_view kind) {
  return object_of("language", "verilog", "runtime", "simulator", "dependencies", "none",
                   "category", category, "difficulty", difficulty, "dataset_kind", kind);
}

Object source_of(const std::string& repository, const std::string& commit) {
  return object_of("source", repository, "commit", commit);
}

class ContractMaker {
 public:
  ContractMaker(const Record& record, const ImportSettings& settings)
      : record_(record), settings_(settings), id_(contract_id(record)) {}

  Result<std::vector<ContractFile>> run(const std::string& repository, const std::string& commit) {
    const bool in_words = is_comprehension(category_number(record_.category));
    if (in_words && !settings_.single_shot)
      return invalid("answers in words are scored by a text metric, not by a check");
    if (needs_eda(record_.value)) {
      if (settings_.licensed)
        return Error{kBeyondSubset,
                     fmt::format("needs the network of licensed tools: this {}", kNeedsCompose)};
      return invalid(
          "needs licensed tools: --verif-eda-image and --license-network name their image and "
          "network");
    }
    PROCTOR_TRY(const auto heavy, heavy_source(record_, settings_.repo_url, settings_.commit_hash));
    heavy_ = heavy.has_value();
    PROCTOR_TRY(const Array checks,
                in_words ? Result<Array>(answered("subjective.txt")) : checks_of());
    Object contract = head(repository, commit);
    if (!image_.empty()) contract.append("environment", object_of("image", image_));
    if (!services_.empty()) contract.append("services", services_);
    contract.append("checks", checks);
    if (!in_words) contract.append("acceptance_files", acceptance_files());
    if (settings_.single_shot) {
      PROCTOR_TRY(const SingleShotTask task, settings_.single_shot(record_));
      put("single-shot.json", write_task(task));
      contract.append("single_shot", id_ + "/single-shot.json");
    }
    // The payload of a heavy record may have a src of its own.
    Object policy = object_of(
        "protected", Array{heavy_ ? std::string(kHarnessFolder) + "/**" : "src/**", "prompt.json"},
        "wall", fmt::format("{}s", settings_.agent_limit.count()), "disk",
        fmt::format("{}MiB", settings_.disk_mebibytes));
    if (settings_.network) policy.append("network", true);
    contract.append("policy", std::move(policy));
    contract.append("gates", object_of("build", "none"));
    if (!in_words) PROCTOR_CHECK_OK(reference(contract));
    files_.insert(files_.begin(), {id_ + ".yaml", write_yaml(Value(std::move(contract))), 0644});
    return std::move(files_);
  }

 private:
  Object head(const std::string& repository, const std::string& commit) {
    put("briefing.md", *prompt_of(record_));
    return object_of("id", id_, "title", record_.id.text, "type", "feature", "briefing_file",
                     id_ + "/briefing.md", "strata",
                     strata_of(record_.category, record_.difficulty, to_string(record_.shape)),
                     "repository", source_of(repository, commit));
  }

  void put(const std::string& name, std::string bytes, unsigned mode = 0644) {
    files_.push_back({id_ + "/" + name, std::move(bytes), mode});
  }

  Result<Array> checks_of() {
    const std::string* compose = compose_of(record_);
    if (compose == nullptr) return invalid("has no docker-compose.yml");
    const Object* harness = harness_files(record_);
    PROCTOR_TRY(const ComposeFile file, normalise_compose(*compose, {.names = settings_.names}));
    PROCTOR_TRY(const std::vector<ServicePlan> plans, plan_services(file.value));
    if (!settings_.containers) image_ = settings_.image;
    PROCTOR_CHECK_OK(services_beside(plans, *harness));
    Array out;
    for (const ServicePlan& plan : plans) {
      PROCTOR_TRY(const EnvPairs environment, environment_of(plan, *harness));
      const std::string id = fmt::format("service-{}", out.size() + 1);
      Object check = object_of("id", id, "kind", "integration", "timeout",
                               fmt::format("{}s", settings_.harness_limit.count()));
      if (!services_.empty()) check.append("services", names_of(plan.depends_on));
      if (settings_.containers) {
        PROCTOR_TRY(Object container, container_of(plan, environment, *harness));
        check.append("container", std::move(container));
      } else {
        if (plan.command.empty() && plan.entrypoint.empty())
          return invalid("its command is in the image");
        put(id + ".sh", script_of(plan, environment), 0755);
        check.append("script", id_ + "/" + id + ".sh");
      }
      out.push_back(std::move(check));
    }
    return out;
  }

  static Array names_of(const std::vector<std::string>& names) {
    Array out;
    for (const std::string& name : names) out.emplace_back(name);
    return out;
  }

  // What others depend on runs beside them, as compose starts it: by its own lines alone.
  Status services_beside(const std::vector<ServicePlan>& plans, const Object& harness) {
    std::set<std::string> wanted, healthy;
    for (const ServicePlan& plan : plans) {
      wanted.insert(plan.depends_on.begin(), plan.depends_on.end());
      healthy.insert(plan.needs_healthy.begin(), plan.needs_healthy.end());
    }
    if (wanted.empty()) return ok_status();
    if (!settings_.containers)
      return invalid("its services depend on each other: they need containers");
    if (settings_.network)
      return invalid(
          "its services depend on each other: they cannot share a network with the world");
    for (const ServicePlan& plan : plans) {
      if (!wanted.contains(plan.name)) continue;
      if (!is_host_label(plan.name) || kServicesMost <= services_.size())
        return Error{kBeyondSubset,
                     fmt::format("service {}: its name is no host's name of a-z, 0-9 and \"-\", or "
                                 "more than 16 are depended on: this {}",
                                 printable(plan.name), kNeedsCompose)};
      PROCTOR_TRY(const EnvPairs environment, environment_of(plan, harness));
      PROCTOR_TRY(Object container, bare_container_of(plan, environment, harness));
      if (!plan.working_dir.empty()) container.append("working_dir", plan.working_dir);
      PROCTOR_TRY(Array mounts, mounts_of(plan, false));
      if (!mounts.empty()) container.append("mounts", std::move(mounts));
      Object service = object_of("name", plan.name, "container", std::move(container));
      if (!plan.depends_on.empty()) service.append("depends_on", names_of(plan.depends_on));
      if (healthy.contains(plan.name)) {
        if (plan.health.command.empty())
          return invalid("service {} is to be healthy, and nothing says when",
                         printable(plan.name));
        service.append("ready", ready_of(plan.health));
      }
      services_.emplace_back(std::move(service));
    }
    return ok_status();
  }

  // Asked more often than compose asks, which changes nothing but the time it takes.
  static Object ready_of(const ServicePlan::Health& health) {
    constexpr std::chrono::milliseconds kOften{500};
    return object_of("command", health.command, "interval",
                     fmt::format("{}ms", std::min(health.interval, kOften).count()), "timeout",
                     fmt::format("{}ms", health.at_most.count()));
  }

  // The container that upstream's command line makes of a service: CVDP 5.1.
  Result<Object> container_of(const ServicePlan& plan, const EnvPairs& environment,
                              const Object& harness) {
    PROCTOR_TRY(Object c, bare_container_of(plan, environment, harness));
    c.append("working_dir", heavy_ ? "/rundir" : "/code/rundir");
    if (object_at(&c, "variables") == nullptr) c.append("variables", Object());
    object_at(&c, "variables")->set("HOME", "/code/rundir");
    PROCTOR_TRY(Array mounts, mounts_of(plan, true));
    c.append("mounts", std::move(mounts));
    return c;
  }

  // Image, words and environment: what its own lines say.
  Result<Object> bare_container_of(const ServicePlan& plan, const EnvPairs& environment,
                                   const Object& harness) {
    PROCTOR_TRY(const std::string image, image_of(plan, harness));
    if (image_.empty()) image_ = image;
    Object c;
    if (image != image_) c.append("image", image);
    if (!plan.entrypoint.empty()) c.append("entrypoint", names_of(plan.entrypoint));
    if (!plan.command.empty()) c.append("command", names_of(plan.command));
    Object variables;
    for (const auto& [name, value] : environment)
      if (value) variables.set(name, Value(*value));
    if (!variables.empty()) c.append("variables", std::move(variables));
    return c;
  }

  // `upstreams`: with the folders that its command line adds.
  Result<Array> mounts_of(const ServicePlan& plan, bool upstreams) {
    Array out;
    const std::string root = heavy_ ? std::string(kHarnessFolder) + "/" : "";
    const auto mount = [&](const std::string& from, const std::string& at, bool writable) {
      Object m = object_of("from", from == "." ? from : root + from, "at", at);
      if (!writable) m.append("writable", false);
      out.emplace_back(std::move(m));
      shown_.insert(from.substr(0, from.find('/')));
    };
    if (!upstreams) {
      // Its own alone.
    } else if (heavy_) {
      mount(".", "/code", true);
      mount("src", "/src", true);
      mount("rundir", "/rundir", true);
    } else {
      for (const char* folder : {"docs", "rundir", "rtl", "verif", "src"})
        mount(folder, std::string("/code/") + folder, true);
    }
    for (const ServicePlan::Mount& m : plan.mounts) {
      const auto trim = [](std::string path) {
        while (1 < path.size() && path.ends_with('/')) path.pop_back();
        return path;
      };
      const std::string from = trim(below(m.source));
      if (!m.source.starts_with("./") || !is_safe_relative(from))
        return invalid("service {}: the volume \"{}\" is no folder of the harness",
                       printable(plan.name), printable(m.source));
      // As upstream's command line has them, whatever the file says.
      const std::string at = trim(m.target);
      if (!heavy_ || (at != "/src" && at != "/rundir" && at != "/code"))
        mount(from, at, !m.read_only);
    }
    return out;
  }

  // A path of a compose file, without "./".
  static std::string below(std::string path) {
    while (path.starts_with("./")) path.erase(0, 2);
    return path;
  }

  static auto file_in(const BuildContext& context, const std::string& path) {
    return std::ranges::find(context.files, path, &std::pair<std::string, std::string>::first);
  }

  Result<std::string> image_of(const ServicePlan& plan, const Object& harness) const {
    if (!settings_.image.empty()) return settings_.image;
    if (!settings_.image_id) return invalid("no image is known here");
    if (plan.build.empty()) return settings_.image_id(plan.image);
    PROCTOR_TRY(const BuildContext context, context_of(plan, harness));
    // Another name of an image that is there needs no engine that builds.
    if (const auto read = read_dockerfile(file_in(context, context.dockerfile)->second);
        read && read->only_from)
      return settings_.image_id(read->bases[0]);
    if (!settings_.build)
      return invalid("service {}: building images is not asked for", printable(plan.name));
    return settings_.build(context);
  }

  Result<BuildContext> context_of(const ServicePlan& plan, const Object& harness) const {
    const auto wrong = [&](const std::string& what) {
      return invalid("service {}: {}", printable(plan.name), what);
    };
    std::string folder = below(plan.build);
    if (folder == ".") folder.clear();
    if (!folder.empty() && !folder.ends_with('/')) folder += '/';
    BuildContext out;
    for (const Object* files : {context_files(record_), &harness}) {  // as they lie in the folder
      if (files == nullptr) continue;
      for (const Member& m : *files) {
        if (!m.key.starts_with(folder) || m.value.string() == nullptr) continue;
        const std::string path = m.key.substr(folder.size());
        if (!is_safe_relative(path)) return wrong("\"" + printable(m.key) + "\" leads outside");
        std::erase_if(out.files, [&](const auto& f) { return f.first == path; });
        out.files.emplace_back(path, substitute(*m.value.string(), settings_.names));
      }
    }
    out.dockerfile = plan.dockerfile;
    const auto file = file_in(out, out.dockerfile);
    if (file == out.files.end()) return wrong("there is no \"" + printable(out.dockerfile) + "\"");
    const auto read = read_dockerfile(file->second);
    if (!read) return wrong("its Dockerfile does not say what it begins with");
    out.bases = read->bases;
    return out;
  }

  Result<EnvPairs> environment_of(const ServicePlan& plan, const Object& harness) const {
    EnvPairs out;
    for (const std::string& path : plan.env_files) {
      const std::string* text = text_at(harness, below(path));
      if (text == nullptr)
        return invalid("its env_file \"{}\" is not in the harness", printable(path));
      PROCTOR_TRY(const EnvPairs pairs, parse_env_file(substitute(*text, settings_.names)));
      out.insert(out.end(), pairs.begin(), pairs.end());
    }
    out.insert(out.end(), plan.environment.begin(), plan.environment.end());
    for (const auto& [name, value] : out)
      if (!is_variable(name) || name.starts_with("PROCTOR_"))
        return invalid("\"{}\" is no variable's name", printable(name));
    return out;
  }

  // What the agent must not see until it is judged.
  Array acceptance_files() {
    Array out;
    for (const Member& m : *harness_files(record_)) {
      const std::string to = heavy_ ? std::string(kHarnessFolder) + "/" + m.key : m.key;
      const bool seen =
          m.key.starts_with("src/") || shown_.contains(m.key.substr(0, m.key.find('/')));
      if (!seen || m.value.string() == nullptr) continue;
      put("harness/" + m.key, substitute(*m.value.string(), settings_.names));
      out.push_back(object_of("from", id_ + "/harness/" + m.key, "to", to));
    }
    return out;
  }

  Status reference(Object& contract) {
    std::string diff;
    if (heavy_) {
      PROCTOR_TRY(diff, heavy_reference(record_));
    } else {
      const bool have = !record_.redacted && solution_files(record_) != nullptr;
      if (!have && !settings_.golden_of_redacted) return ok_status();
      if (solution_files(record_) != nullptr)
        for (const Member& m : *solution_files(record_)) {
          if (m.value.string() == nullptr && have && !settings_.golden_of_redacted)
            return ok_status();
          PROCTOR_CHECK_OK(add_difference(m, diff));
        }
    }
    if (diff.empty() && !settings_.golden_of_redacted) return ok_status();
    put("reference.patch", std::move(diff));
    contract.append("reference_patch", id_ + "/reference.patch");
    return ok_status();
  }

  Status add_difference(const Member& m, std::string& diff) const {
    const std::string none;
    const std::string& text = m.value.string() == nullptr ? none : *m.value.string();
    const std::string* before = text_at(context_files(record_), m.key);
    std::string after = text;
    if (record_.shape == Shape::kAgentic) {
      PROCTOR_TRY(Applied applied,
                  apply_patch(before == nullptr ? std::string_view() : *before, text));
      after = std::move(applied.text);
    }
    if (before == nullptr || *before != after) diff += git_diff(m.key, before, after);
    return ok_status();
  }

  const Record& record_;
  const ImportSettings& settings_;
  std::string id_;
  std::string image_;            // the environment's
  Array services_;               // that others depend on
  std::set<std::string> shown_;  // top folders of the harness that containers see
  bool heavy_ = false;
  std::vector<ContractFile> files_;
};
}  // namespace

Result<std::vector<ContractFile>> make_contract(const Record& record, const std::string& repository,
                                                const std::string& commit,
                                                const ImportSettings& settings) {
  if (prompt_of(record) == nullptr) return invalid("has no prompt");
  return ContractMaker(record, settings).run(repository, commit);
}

std::vector<ContractFile> make_judgement(const JudgeCase& judged, const std::string& repository,
                                         const std::string& commit) {
  const Object c =
      object_of("id", judged.name, "type", "judgement", "briefing",
                "Judge an answer in words against its reference.", "strata",
                strata_of(judged.category, judged.difficulty, judged.kind), "repository",
                source_of(repository, commit), "checks", answered(kJudgementFile), "gates",
                object_of("build", "none"), "single_shot", judged.name + "/single-shot.json");
  return {{judged.name + ".yaml", write_yaml(c), 0644},
          {judged.name + "/single-shot.json", write_task(judge_task(judged)), 0644}};
}

std::string contract_id(const Record& record) {
  return lowered(record.id.text);
}

Result<std::string> commit_stream(const Record& record, std::uint64_t mark,
                                  const CommitExtras& extras) {
  std::string out = fmt::format(
      "commit refs/heads/{}\nmark :{}\ncommitter cvdp <cvdp@localhost> 0 +0000\ndata {}\n{}\n",
      contract_id(record), mark, record.id.text.size() + 1, record.id.text);
  const auto file = [&](const std::string& path, const std::string& bytes) -> Status {
    if (!is_safe_relative(path) || path.find_first_of("\n\"\\") != std::string::npos ||
        path == ".git" || path.starts_with(".git/"))
      return invalid("\"{}\" cannot be in a commit", printable(path));
    out += fmt::format("M 100644 inline \"{}\"\ndata {}\n{}\n", path, bytes.size(), bytes);
    return ok_status();
  };
  if (!extras.tree.empty()) out += "M 040000 " + extras.tree + " \"\"\n";
  if (const Object* context = context_files(record); context != nullptr && extras.tree.empty())
    for (const Member& m : *context)
      PROCTOR_CHECK_OK(file(m.key, m.value.string() == nullptr ? "" : *m.value.string()));
  if (extras.golden) PROCTOR_CHECK_OK(file(kGoldenPatchFile, golden_patch_text(record)));
  if (const Object* harness = harness_files(record); harness != nullptr && extras.harness)
    for (const Member& m : *harness)
      if (m.value.string() != nullptr &&
          (m.key.starts_with("src/") || m.key == "docker-compose.yml"))
        PROCTOR_CHECK_OK(file(m.key, *m.value.string()));
  PROCTOR_CHECK_OK(file("prompt.json", prompt_json(record)));
  return out;
}
}  // namespace proctor::cvdp
