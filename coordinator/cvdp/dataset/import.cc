#include "coordinator/cvdp/dataset/import.h"

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
  std::string out(kRole);
  out += "\n\nYou are solving a problem of the kind '" + std::string(g.task) + "': return only " +
         std::string(g.content) + ".\n";
  if (form == AnswerForm::kPlainText) return out;
  out += "Answer in one of these JSON forms:\n" + std::string(kCodeSchema) + "\nor\n" +
         std::string(kResponseSchema) +
         "\nThe JSON must be correct: escape quotes, backslashes and "
         "line ends inside texts.\n";
  return out;
}

std::string closing(const std::vector<std::string>& expected, bool in_words) {
  if (expected.size() == 1)
    return "Answer in plain text, not in JSON: your answer becomes the file " + expected.front() +
           " as it is.\n";
  if (in_words) return "Answer in the form { \"response\": \"<your answer here>\" }.\n";
  if (expected.empty()) return "Give your answer.\n";
  std::string names;
  for (const std::string& e : expected) names += (names.empty() ? "'" : ", '") + e + "'";
  return "Name the files of your answer as follows: [" + names + "].\n";
}

std::string fenced(std::string_view text) {
  return "```\n" + std::string(text) + "\n```\n";
}
}  // namespace

Result<Prompt> prompt_for(const Record& record) {
  const int category = category_number(record.category);
  const Guidance* guidance = nullptr;
  for (const Guidance& g : kGuidance)
    if (g.category == category) guidance = &g;
  if (guidance == nullptr)
    return Error{Errc::kInvalid, "no model is asked about category " + record.category};
  const std::string* task = prompt_of(record);
  if (task == nullptr) return Error{Errc::kInvalid, "the record has no prompt"};
  Prompt out;
  const bool in_words = is_comprehension(category);
  if (const Object* solution = solution_files(record); solution != nullptr && !in_words)
    for (const Member& m : *solution) out.expected.push_back(m.key);
  out.system = system_prompt(*guidance, form_for(out.expected.size()));
  if (const Object* context = context_files(record))
    for (const Member& m : *context)
      if (const std::string* text = m.value.string())
        out.user += "\nThe file " + m.key + " holds:\n" + fenced(*text);
  out.user += "\nThe task is: " + *task + "\n" + closing(out.expected, in_words);
  return out;
}

JudgePrompt judge_prompt(std::string_view problem, std::string_view reference,
                         std::string_view candidate) {
  JudgePrompt out;
  out.system =
      "You are an expert who grades answers. Give a score from 0.0 to 1.0 that says how well the "
      "candidate answers the original question, compared with the reference. Judge it by:\n"
      "1. relevance to the question\n2. nearness of its meaning to the reference\n"
      "3. completeness\n4. correctness\n5. style and clarity\n"
      "Answer with a JSON object that has the members score (a number) and reasoning (a text).";
  out.user = "Grade the candidate against the reference for this problem.\n\nProblem:\n" +
             fenced(problem) + "\nReference:\n" + fenced(reference) + "\nCandidate:\n" +
             fenced(candidate) +
             "\nJudge it relative to the problem. For example:\n"
             "{\"score\": 0.85, \"reasoning\": \"covers all points but one\"}";
  return out;
}

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

// Texts of a contract that is made of a problem: a service's command as a shell script for the
// contract's own sandbox, and a file's change as git would write it.  Pure.
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

// A whole file against another, every line replaced.  `before`: null where there was none.
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

namespace {
bool is_variable(std::string_view name) {
  return !name.empty() && (name[0] < '0' || '9' < name[0]) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
                  c == '_';
         });
}

constexpr std::size_t kServicesMost = 16;  // of a contract

// As contracts name their services.
bool is_host_label(std::string_view name) {
  const auto plain = [](char c) { return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9'); };
  return !name.empty() && name.size() < 64 && plain(name.front()) && plain(name.back()) &&
         name != "localhost" && name != "sandbox" &&
         std::all_of(name.begin(), name.end(), [&](char c) { return plain(c) || c == '-'; });
}

// Whether there is an answer; how good it is, its score says.
Array answered(const std::string& file) {
  Object check;
  check.append("id", "answered");
  check.append("command", "test -s " + file);
  check.append("kind", "script");
  check.append("timeout", "60s");
  return {Value(std::move(check))};
}

Object strata_of(std::string_view category, std::string_view difficulty, std::string_view kind) {
  Object strata;
  strata.append("language", "verilog");
  strata.append("runtime", "simulator");
  strata.append("dependencies", "none");
  strata.append("category", category);
  strata.append("difficulty", difficulty);
  strata.append("dataset_kind", kind);
  return strata;
}

Object source_of(const std::string& repository, const std::string& commit) {
  Object r;
  r.append("source", repository);
  r.append("commit", commit);
  return r;
}

class ContractMaker {
 public:
  ContractMaker(const Record& record, const ImportSettings& settings)
      : record_(record), settings_(settings), id_(contract_id(record)) {}

  Result<std::vector<ContractFile>> run(const std::string& repository, const std::string& commit) {
    const bool in_words = is_comprehension(category_number(record_.category));
    if (in_words && !settings_.single_shot)
      return Error{Errc::kInvalid, "answers in words are scored by a text metric, not by a check"};
    if (needs_eda(record_.value))
      return Error{Errc::kInvalid,
                   settings_.licensed
                       ? "needs the network of licensed tools: this " + std::string(kNeedsCompose)
                       : "needs licensed tools: --verif-eda-image and --license-network name "
                         "their image and network"};
    PROCTOR_TRY(const auto heavy, heavy_source(record_, settings_.repo_url, settings_.commit_hash));
    heavy_ = heavy.has_value();
    PROCTOR_TRY(const Array checks,
                in_words ? Result<Array>(answered("subjective.txt")) : checks_of());
    Object contract = head(repository, commit);
    if (!image_.empty()) {
      Object environment;
      environment.append("image", image_);
      contract.append("environment", std::move(environment));
    }
    if (!services_.empty()) contract.append("services", services_);
    contract.append("checks", checks);
    if (!in_words) contract.append("acceptance_files", acceptance_files());
    if (settings_.single_shot) {
      PROCTOR_TRY(const SingleShotTask task, settings_.single_shot(record_));
      put("single-shot.json", write_task(task));
      contract.append("single_shot", id_ + "/single-shot.json");
    }
    // The payload of a heavy record may have a src of its own.
    Array protected_globs = {Value(heavy_ ? std::string(kHarnessFolder) + "/**" : "src/**"),
                             Value("prompt.json")};
    Object policy;
    policy.append("protected", std::move(protected_globs));
    if (settings_.network) policy.append("network", true);
    policy.append("wall", std::to_string(settings_.agent_limit.count()) + "s");
    policy.append("disk", std::to_string(settings_.disk_mebibytes) + "MiB");
    contract.append("policy", std::move(policy));
    if (!in_words) PROCTOR_CHECK_OK(reference(contract));
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
    c.append("strata", strata_of(record_.category, record_.difficulty, to_string(record_.shape)));
    c.append("repository", source_of(repository, commit));
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
    if (!settings_.containers) image_ = settings_.image;
    PROCTOR_CHECK_OK(services_beside(plans, *harness));
    Array out;
    for (const ServicePlan& plan : plans) {
      PROCTOR_TRY(const EnvPairs environment, environment_of(plan, *harness));
      const std::string id = "service-" + std::to_string(out.size() + 1);
      Object check;
      check.append("id", id);
      if (!services_.empty()) check.append("services", names_of(plan.depends_on));
      if (settings_.containers) {
        PROCTOR_TRY(Object container, container_of(plan, environment, *harness));
        check.append("container", std::move(container));
      } else {
        if (plan.command.empty() && plan.entrypoint.empty())
          return Error{Errc::kInvalid, "its command is in the image"};
        put(id + ".sh", script_of(plan, environment), 0755);
        check.append("script", id_ + "/" + id + ".sh");
      }
      check.append("kind", "integration");
      check.append("timeout", std::to_string(settings_.harness_limit.count()) + "s");
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
      return Error{Errc::kInvalid, "its services depend on each other: they need containers"};
    if (settings_.network)
      return Error{Errc::kInvalid,
                   "its services depend on each other: they cannot share a network with the world"};
    for (const ServicePlan& plan : plans) {
      if (!wanted.contains(plan.name)) continue;
      if (!is_host_label(plan.name) || kServicesMost <= services_.size())
        return Error{Errc::kInvalid, "service " + printable(plan.name) +
                                         ": its name is no host's name of a-z, 0-9 and \"-\", or "
                                         "more than 16 are depended on: this " +
                                         std::string(kNeedsCompose)};
      PROCTOR_TRY(const EnvPairs environment, environment_of(plan, harness));
      PROCTOR_TRY(Object container, bare_container_of(plan, environment, harness));
      if (!plan.working_dir.empty()) container.append("working_dir", plan.working_dir);
      PROCTOR_TRY(Array mounts, mounts_of(plan, false));
      if (!mounts.empty()) container.append("mounts", std::move(mounts));
      Object service;
      service.append("name", plan.name);
      service.append("container", std::move(container));
      if (!plan.depends_on.empty()) service.append("depends_on", names_of(plan.depends_on));
      if (healthy.contains(plan.name)) {
        if (plan.health.command.empty())
          return Error{Errc::kInvalid, "service " + printable(plan.name) +
                                           " is to be healthy, and nothing says when"};
        service.append("ready", ready_of(plan.health));
      }
      services_.emplace_back(std::move(service));
    }
    return ok_status();
  }

  // Asked more often than compose asks, which changes nothing but the time it takes.
  static Object ready_of(const ServicePlan::Health& health) {
    constexpr std::chrono::milliseconds kOften{500};
    const auto ms = [](std::chrono::milliseconds d) { return std::to_string(d.count()) + "ms"; };
    Object out;
    out.append("command", health.command);
    out.append("interval", ms(std::min(health.interval, kOften)));
    out.append("timeout", ms(health.at_most));
    return out;
  }

  // The container that upstream's command line makes of a service: CVDP 5.1.
  Result<Object> container_of(const ServicePlan& plan, const EnvPairs& environment,
                              const Object& harness) {
    PROCTOR_TRY(Object c, bare_container_of(plan, environment, harness));
    c.append("working_dir", heavy_ ? "/rundir" : "/code/rundir");
    const Value* given = c.find("variables");
    Object variables = given == nullptr ? Object() : *given->object();
    variables.set("HOME", Value("/code/rundir"));
    c.set("variables", Value(std::move(variables)));
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
    const auto words = [](const std::vector<std::string>& from) {
      Array to;
      for (const std::string& word : from) to.emplace_back(word);
      return to;
    };
    if (!plan.entrypoint.empty()) c.append("entrypoint", words(plan.entrypoint));
    if (!plan.command.empty()) c.append("command", words(plan.command));
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
      Object m;
      m.append("from", from == "." ? from : root + from);
      m.append("at", at);
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
      std::string from = m.source;
      if (!from.starts_with("./"))
        return Error{Errc::kInvalid, "service " + printable(plan.name) + ": the volume \"" +
                                         printable(from) + "\" is no folder of the harness"};
      const auto trim = [](std::string path) {
        while (1 < path.size() && path.ends_with('/')) path.pop_back();
        return path;
      };
      while (from.starts_with("./")) from.erase(0, 2);
      from = trim(from);
      if (!is_safe_relative(from))
        return Error{Errc::kInvalid, "service " + printable(plan.name) + ": the volume \"" +
                                         printable(m.source) + "\" is no folder of the harness"};
      // As upstream's command line has them, whatever the file says.
      const std::string at = trim(m.target);
      if (!heavy_ || (at != "/src" && at != "/rundir" && at != "/code"))
        mount(from, at, !m.read_only);
    }
    return out;
  }

  Result<std::string> image_of(const ServicePlan& plan, const Object& harness) const {
    if (!settings_.image.empty()) return settings_.image;
    if (!settings_.image_id) return Error{Errc::kInvalid, "no image is known here"};
    if (plan.build.empty()) return settings_.image_id(plan.image);
    PROCTOR_TRY(const BuildContext context, context_of(plan, harness));
    const auto dockerfile =
        std::find_if(context.files.begin(), context.files.end(),
                     [&](const auto& f) { return f.first == context.dockerfile; });
    // Another name of an image that is there needs no engine that builds.
    if (const auto read = read_dockerfile(dockerfile->second); read && read->only_from)
      return settings_.image_id(read->bases[0]);
    if (!settings_.build)
      return Error{Errc::kInvalid,
                   "service " + printable(plan.name) + ": building images is not asked for"};
    return settings_.build(context);
  }

  Result<BuildContext> context_of(const ServicePlan& plan, const Object& harness) const {
    const auto wrong = [&](const std::string& what) {
      return Error{Errc::kInvalid, "service " + printable(plan.name) + ": " + what};
    };
    std::string folder = plan.build;
    while (folder.starts_with("./")) folder.erase(0, 2);
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
    const auto file = std::find_if(out.files.begin(), out.files.end(),
                                   [&](const auto& f) { return f.first == out.dockerfile; });
    if (file == out.files.end()) return wrong("there is no \"" + printable(out.dockerfile) + "\"");
    const auto read = read_dockerfile(file->second);
    if (!read) return wrong("its Dockerfile does not say what it begins with");
    out.bases = read->bases;
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
      if (!is_variable(name) || name.starts_with("PROCTOR_"))
        return Error{Errc::kInvalid, "\"" + printable(name) + "\" is no variable's name"};
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
      Object o;
      o.append("from", id_ + "/harness/" + m.key);
      o.append("to", to);
      out.push_back(std::move(o));
    }
    return out;
  }

  Status reference(Object& contract) {
    if (heavy_) return heavy_patch(contract);
    const bool have = !record_.redacted && solution_files(record_) != nullptr;
    if (!have && !settings_.golden_of_redacted) return ok_status();
    std::string diff;
    if (solution_files(record_) != nullptr)
      for (const Member& m : *solution_files(record_)) {
        if (m.value.string() == nullptr && have && !settings_.golden_of_redacted)
          return ok_status();
        PROCTOR_CHECK_OK(add_difference(m, diff));
      }
    if (diff.empty() && !settings_.golden_of_redacted) return ok_status();
    put("reference.patch", std::move(diff));
    contract.append("reference_patch", id_ + "/reference.patch");
    return ok_status();
  }

  Status heavy_patch(Object& contract) {
    PROCTOR_TRY(std::string diff, heavy_reference(record_));
    if (diff.empty() && !settings_.golden_of_redacted) return ok_status();
    put("reference.patch", std::move(diff));
    contract.append("reference_patch", id_ + "/reference.patch");
    return ok_status();
  }

  Status add_difference(const Member& m, std::string& diff) const {
    const std::string none;
    const std::string& text = m.value.string() == nullptr ? none : *m.value.string();
    const std::string* before =
        context_files(record_) == nullptr ? nullptr : text_at(*context_files(record_), m.key);
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
  if (prompt_of(record) == nullptr) return Error{Errc::kInvalid, "has no prompt"};
  return ContractMaker(record, settings).run(repository, commit);
}

std::vector<ContractFile> make_judgement(const JudgeCase& judged, const std::string& repository,
                                         const std::string& commit) {
  const JudgePrompt prompt = judge_prompt(judged.problem, judged.reference, judged.candidate);
  SingleShotTask task;
  task.answer = AnswerKind::kJudgement;
  task.system = prompt.system;
  task.user = prompt.user;
  Object c;
  c.append("id", judged.name);
  c.append("type", "judgement");
  c.append("briefing", "Judge an answer in words against its reference.");
  c.append("strata", strata_of(judged.category, judged.difficulty, judged.kind));
  c.append("repository", source_of(repository, commit));
  c.append("checks", answered(kJudgementFile));
  c.append("single_shot", judged.name + "/single-shot.json");
  return {{judged.name + ".yaml", write_yaml(Value(std::move(c))), 0644},
          {judged.name + "/single-shot.json", write_task(task), 0644}};
}

std::string contract_id(const Record& record) {
  std::string out = record.id.text;
  for (char& c : out)
    if ('A' <= c && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

Result<std::string> commit_stream(const Record& record, std::uint64_t mark,
                                  const CommitExtras& extras) {
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
  Object prompt;
  prompt.append("prompt", prompt_of(record) == nullptr ? Value() : Value(*prompt_of(record)));
  PROCTOR_CHECK_OK(file("prompt.json", write_json(Value(std::move(prompt)))));
  return out;
}
}  // namespace proctor::cvdp
