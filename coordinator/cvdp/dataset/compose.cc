#include "coordinator/cvdp/dataset/compose.h"

#include <algorithm>
#include <array>

#include "common/base/digest.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/contract/fields.h"
#include "coordinator/cvdp/pycompat/yaml.h"

namespace proctor::cvdp {
namespace {
// Docker's blanks, fewer than Python's.
std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  std::vector<std::string_view> out;
  for (line = trimmed(line, kBlanks); !line.empty(); line = trimmed(line, kBlanks)) {
    out.push_back(line.substr(0, line.find_first_of(kBlanks)));
    line.remove_prefix(out.back().size());
  }
  return out;
}
}  // namespace

std::optional<Dockerfile> read_dockerfile(std::string_view text) {
  Dockerfile out;
  std::vector<std::string_view> stages;
  const auto in = [](const auto& list, std::string_view word) {
    return std::ranges::find(list, word) != list.end();
  };
  std::size_t instructions = 0;
  bool goes_on = false;  // the line before ended in a backslash
  while (!text.empty()) {
    std::vector<std::string_view> words = words_of(take_until(text, '\n'));
    if (words.empty() || words[0].starts_with('#')) continue;
    const bool begins = !goes_on;
    goes_on = words.back().ends_with('\\');
    if (!begins) continue;
    ++instructions;
    if (lowered(words[0]) != "from") continue;
    std::erase_if(words, [](std::string_view w) { return w.starts_with("--"); });
    if (words.size() < 2 || words[1].find('$') != std::string_view::npos) return std::nullopt;
    if (!in(stages, words[1]) && !in(out.bases, words[1])) out.bases.emplace_back(words[1]);
    if (words.size() == 4 && lowered(words[2]) == "as") stages.push_back(words[3]);
  }
  if (out.bases.empty()) return std::nullopt;
  out.only_from = instructions == 1 && stages.empty();
  return out;
}

namespace {
void replace_all(std::string& text, std::string_view from, const std::string& to) {
  if (to.empty()) return;
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

Object external_network(const std::string& name) {
  return object_of("name", name, "external", true);
}

constexpr std::string_view kLicnetwork = "licnetwork";

// The record's own name for the licence network becomes the configured one everywhere.
void rewrite_licence_network(Object& top, const std::string& name) {
  if (object_at(&top, "networks") == nullptr) top.set("networks", Object());
  Object& networks = *object_at(&top, "networks");
  if (name != kLicnetwork) networks.erase(kLicnetwork);
  networks.set(name, external_network(name));
  Object* services = object_at(&top, "services");
  if (services == nullptr || name == kLicnetwork) return;
  for (Member& service : services->members()) {
    if (Array* list = array_at(service.value.object(), "networks"))
      for (Value& v : *list)
        if (v == Value(kLicnetwork)) v = Value(name);
    if (Object* map = object_at(service.value.object(), "networks"))
      for (Member& m : map->members())
        if (m.key == kLicnetwork) m.key = name;
  }
}

// Mounts over /code would hide what the runner mounts there.
void drop_code_mounts(Object& services, std::vector<std::string>& warnings) {
  for (Member& service : services.members()) {
    Array* const list = array_at(service.value.object(), "volumes");
    if (list == nullptr) continue;
    std::erase_if(*list, [&](const Value& v) {
      bool drop = v.string() != nullptr && v.string()->find("/code") != std::string::npos;
      if (const Object* o = v.object()) drop = o->find("/code") != nullptr;
      if (drop)
        warnings.push_back(fmt::format("service {}: the volume {} is dropped",
                                       printable(service.key), printable(python_repr_of(v))));
      return drop;
    });
  }
}

Error refusal(const std::string& service, const std::string& what) {
  return invalid("service {}: {}", printable(service), what);
}

bool leads_outside(std::string_view source) {
  if (source.starts_with('/') || source.starts_with('~') || source.starts_with('$')) return true;
  int depth = 0;
  while (!source.empty()) {
    const std::string_view part = take_until(source, '/');
    if (part == "..") --depth;
    if (part != ".." && part != "." && !part.empty()) ++depth;
    if (depth < 0) return true;
  }
  return false;
}

Status check_mount(const std::string& service, const Value& v) {
  std::string source;
  if (const std::string* s = v.string()) {
    const std::size_t colon = s->find(':');
    if (colon == std::string::npos) return ok_status();  // an anonymous volume
    source = s->substr(0, colon);
  } else if (const std::string* long_form = text_at(v, "source")) {
    source = *long_form;
  }
  if (leads_outside(source))
    return refusal(
        service, fmt::format("mounts \"{}\" from outside the problem's folder", printable(source)));
  return ok_status();
}

Status check_service(const std::string& name, const Value& value) {
  const Object* s = value.object();
  if (s == nullptr) return refusal(name, fmt::format("is {}, not a mapping", value.kind()));
  static constexpr std::array<std::string_view, 9> kNever = {
      "devices",       "cap_add", "security_opt", "device_cgroup_rules", "volumes_from",
      "cgroup_parent", "extends", "userns_mode",  "credential_spec"};
  for (const std::string_view key : kNever)
    if (const Value* v = value_at(s, key); v != nullptr && v->truthy())
      return refusal(name, fmt::format("asks for \"{}\"", key));
  if (const Value* v = value_at(s, "privileged"); v != nullptr && v->truthy())
    return refusal(name, "asks to be privileged");
  for (const char* key : {"network_mode", "pid", "ipc", "uts", "cgroup"})
    if (const std::string* v = text_at(s, key);
        v != nullptr && *v != "none" && *v != "private" && *v != "bridge" && *v != "default")
      return refusal(name, fmt::format("asks for {} \"{}\"", key, printable(*v)));
  if (const Array* volumes = array_at(s, "volumes"))
    for (const Value& mount : *volumes) PROCTOR_CHECK_OK(check_mount(name, mount));
  const auto outside = [&](const char* key, const std::string* v) {
    return v == nullptr || !leads_outside(*v)
               ? ok_status()
               : Status(refusal(name, fmt::format("{} \"{}\" is outside the problem's folder", key,
                                                  printable(*v))));
  };
  PROCTOR_CHECK_OK(outside("build", text_at(s, "build")));
  PROCTOR_CHECK_OK(outside("env_file", text_at(s, "env_file")));
  return outside("build", text_at(object_at(s, "build"), "context"));
}

// Numbers and truth values as compose prints them into an environment.
std::optional<std::string> scalar_text(const Value& v) {
  if (const std::string* s = v.string()) return *s;
  if (const Number* n = v.number()) return n->text;
  if (const bool* b = v.boolean()) return *b ? "true" : "false";
  return std::nullopt;
}
}  // namespace

std::string substitute(std::string text, const ImageNames& names) {
  if (text.find("__") == std::string::npos) return text;
  replace_all(text, "__VERIF_EDA_IMAGE__", names.verif_eda);
  replace_all(text, "__LICENSE_NETWORK__", names.license_network);
  replace_all(text, "__OSS_SIM_IMAGE__", names.oss_sim);
  replace_all(text, "__OSS_PNR_IMAGE__", names.oss_pnr);
  return text;
}

bool needs_eda(const Value& record) {
  const Array* categories = array_at(record.object(), "categories");
  if (categories != nullptr && !categories->empty()) {
    const int n = category_number(scalar_text(categories->front()).value_or(""));
    if (12 <= n && n <= 14) return true;
  }
  const std::string all = python_repr_of(record);
  return all.find("__VERIF_EDA_IMAGE__") != std::string::npos ||
         all.find("__LICENSE_NETWORK__") != std::string::npos;
}

std::string upstream_network_name(std::string_view dataset_path) {
  std::string_view name = dataset_path.substr(dataset_path.rfind('/') + 1);
  if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos && dot != 0)
    name = name.substr(0, dot);
  std::string out = fmt::format("cvdp-bridge-{}-{:.8}", name, md5_hex(dataset_path));
  for (char& c : out)
    if (!is_word_byte(c) && c != '-') c = '-';
  constexpr std::size_t kCut = 64;
  return out.substr(0, kCut);
}

Result<ComposeFile> normalise_compose(std::string_view text, const ComposeSettings& settings) {
  PROCTOR_TRY(Value value,
              read_yaml(substitute(std::string(text), settings.names), "docker-compose.yml"));
  Object* top = value.object();
  if (top == nullptr) return invalid("docker-compose.yml is no mapping");
  ComposeFile out;
  if (settings.needs_eda && !settings.names.license_network.empty())
    rewrite_licence_network(*top, settings.names.license_network);
  Object* services = object_at(top, "services");
  if (services == nullptr || services->empty())
    return invalid("docker-compose.yml has no services");
  if (value_at(top, "include") != nullptr)
    return invalid("docker-compose.yml includes other files");
  drop_code_mounts(*services, out.warnings);
  for (const Member& m : *services) PROCTOR_CHECK_OK(check_service(m.key, m.value));
  // A volume with a driver's options is a mount of the host under another name.
  if (const Object* volumes = object_at(top, "volumes"))
    for (const Member& m : *volumes)
      if (value_at(m.value.object(), "driver_opts") != nullptr)
        return invalid("volume {} asks for \"driver_opts\"", printable(m.key));
  if (!settings.shared_network.empty() && value_at(top, "networks") == nullptr)
    top->set("networks", object_of("default", external_network(settings.shared_network)));
  out.text = write_yaml(value);
  out.value = std::move(value);
  return out;
}

// The services that a compose file asks for, in the subset that harnesses use.

namespace {
// Known keys; the last few say nothing about what runs.
constexpr std::array<std::string_view, 19> kServiceKeys = {
    "image",          "build",    "command",     "entrypoint", "environment",
    "env_file",       "volumes",  "working_dir", "depends_on", "networks",
    "container_name", "hostname", "tty",         "stdin_open", "labels",
    "restart",        "platform", "pull_policy", "healthcheck"};

Error not_known(const std::string& service, std::string_view what) {
  return {kBeyondSubset,
          fmt::format("service {}: {} {}", printable(service), printable(what), kNeedsCompose)};
}
// What stands between "${" and "}", with nothing in the environment.
Result<std::string> replacement(std::string_view inside) {
  const auto unknown = [&] {
    return Error{kBeyondSubset, fmt::format("\"${{{}}}\" {}", printable(inside), kNeedsCompose)};
  };
  std::size_t end = 0;
  while (end < inside.size() && is_word_byte(inside[end])) ++end;
  const std::string_view name = inside.substr(0, end), rest = inside.substr(end);
  // Compose itself needs these two to be set.
  if (name.empty() || name == "PATH" || name == "HOME") return unknown();
  if (rest.empty() || rest.starts_with(":+") || rest.starts_with("+")) return std::string();
  if (rest.starts_with(":-")) return std::string(rest.substr(2));
  if (rest.starts_with("-")) return std::string(rest.substr(1));
  return unknown();
}

// Variables in a text, as compose replaces them: "$$" is a dollar sign, and no variable is set.
Result<std::string> interpolated(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      out += text[i];
      continue;
    }
    const std::string_view rest = text.substr(i + 1);
    if (rest.starts_with("$")) {
      out += '$';
      ++i;
      continue;
    }
    std::string_view inside;
    if (rest.starts_with("{")) {
      const std::size_t close = rest.find('}');
      if (close == std::string_view::npos)
        return invalid("\"{}\" has an open \"${{\"", printable(text));
      inside = rest.substr(1, close - 1);
      i += close + 1;
    } else {
      std::size_t end = 0;
      while (end < rest.size() && is_word_byte(rest[end])) ++end;
      inside = rest.substr(0, end);
      i += end;
    }
    PROCTOR_TRY(const std::string with, replacement(inside));
    out += with;
  }
  return out;
}

// All texts of it; keys stay.
Status interpolate(Value& value) {
  if (std::string* text = value.string()) {
    PROCTOR_TRY(*text, interpolated(*text));
  } else if (Array* items = value.array()) {
    for (Value& item : *items) PROCTOR_CHECK_OK(interpolate(item));
  } else if (Object* object = value.object()) {
    for (Member& m : object->members()) PROCTOR_CHECK_OK(interpolate(m.value));
  }
  return ok_status();
}

class ServiceReader {
 public:
  ServiceReader(const std::string& name, const Object& service) : s_(service) { out_.name = name; }

  Result<ServicePlan> run() {
    for (const Member& m : s_)
      if (std::find(kServiceKeys.begin(), kServiceKeys.end(), m.key) == kServiceKeys.end() &&
          m.value.truthy())
        return unknown(m.key);
    out_.image = text("image");
    out_.working_dir = text("working_dir");
    PROCTOR_CHECK_OK(build());
    PROCTOR_CHECK_OK(words("command", out_.command));
    PROCTOR_CHECK_OK(words("entrypoint", out_.entrypoint));
    PROCTOR_CHECK_OK(environment());
    PROCTOR_CHECK_OK(names("env_file", out_.env_files));
    PROCTOR_CHECK_OK(dependencies());
    PROCTOR_CHECK_OK(health());
    std::vector<std::string> networks;  // none is needed: all that it starts can meet
    PROCTOR_CHECK_OK(names("networks", networks));
    PROCTOR_CHECK_OK(volumes());
    if (out_.image.empty() && out_.build.empty())
      return not_known(out_.name, "no image and no build");
    return std::move(out_);
  }

 private:
  Error unknown(const std::string& key) const { return not_known(out_.name, "\"" + key + "\""); }
  Error unread(const std::string& key) const {
    return not_known(out_.name, "this \"" + key + "\"");
  }
  const Value* at(std::string_view key) const {
    const Value* v = s_.find(key);
    return v == nullptr || v->is_null() ? nullptr : v;
  }
  std::string text(std::string_view key) const {
    const std::string* s = text_at(s_, key);
    return s == nullptr ? "" : *s;
  }

  Status build() {
    const Value* v = at("build");
    if (v == nullptr) return ok_status();
    out_.dockerfile = "Dockerfile";
    if (const std::string* s = v->string()) {
      out_.build = *s;
      return ok_status();
    }
    if (v->object() == nullptr) return unread("build");
    out_.build = ".";
    for (const Member& m : *v->object()) {
      if (m.key == "context" && m.value.string() != nullptr)
        out_.build = *m.value.string();
      else if (m.key == "dockerfile" && m.value.string() != nullptr)
        out_.dockerfile = *m.value.string();
      else
        return unknown("build." + m.key);
    }
    return ok_status();
  }

  Status words(const char* key, std::vector<std::string>& to) {
    const Value* v = at(key);
    if (v == nullptr) return ok_status();
    if (const std::string* s = v->string()) {
      PROCTOR_TRY(to, split_command(*s));
      return ok_status();
    }
    if (v->array() == nullptr) return unread(key);
    for (const Value& item : *v->array()) {
      const auto word = scalar_text(item);
      if (!word) return unread(key);
      to.push_back(*word);
    }
    return ok_status();
  }

  // A list of names, one name, or a mapping of which the keys count.
  Status names(const char* key, std::vector<std::string>& to) {
    const Value* v = at(key);
    if (v == nullptr) return ok_status();
    if (const std::string* s = v->string()) {
      to.push_back(*s);
    } else if (const Array* a = v->array()) {
      for (const Value& item : *a) {
        if (item.string() == nullptr) return unread(key);
        to.push_back(*item.string());
      }
    } else if (const Object* o = v->object()) {
      for (const Member& m : *o) to.push_back(m.key);
    }
    return ok_status();
  }

  // A list of names, or a mapping with a condition each.
  Status dependencies() {
    PROCTOR_CHECK_OK(names("depends_on", out_.depends_on));
    const Object* given = object_at(&s_, "depends_on");
    if (given == nullptr) return ok_status();
    for (const Member& m : *given) {
      const Object* about = m.value.object();
      if (about == nullptr) continue;
      for (const Member& a : *about) {
        const std::string* word = a.value.string();
        if (a.key == "condition" && word != nullptr && *word == "service_healthy")
          out_.needs_healthy.push_back(m.key);
        else if (a.key != "condition" || word == nullptr || *word != "service_started")
          return not_known(out_.name, "\"depends_on." + m.key + "." + a.key + "\"" +
                                          (word == nullptr ? "" : ": " + *word));
      }
    }
    return ok_status();
  }

  Status health() {
    const Value* v = at("healthcheck");
    if (v == nullptr) return ok_status();
    if (v->object() == nullptr) return unread("healthcheck");
    constexpr std::chrono::milliseconds kDefault{30'000};
    constexpr std::int64_t kTries = 3, kTriesMost = 1000;
    std::chrono::milliseconds interval = kDefault, timeout = kDefault, start{0};
    std::int64_t tries = kTries;
    for (const Member& m : *v->object()) {
      const auto d = parse_duration(m.value.string() == nullptr ? "" : *m.value.string());
      if (m.key == "test") {
        PROCTOR_CHECK_OK(health_test(m.value));
        continue;
      }
      if (m.key == "interval" && d.ok())
        interval = *d;
      else if (m.key == "timeout" && d.ok())
        timeout = *d;
      else if (m.key == "start_period" && d.ok())
        start = *d;
      else if (m.key == "retries" && m.value.number() != nullptr)
        tries = std::atoll(m.value.number()->text.c_str());  // NOLINT: bounded below
      else
        return unread("healthcheck." + m.key);
    }
    if (tries < 1 || kTriesMost < tries) return unread("healthcheck.retries");
    out_.health.interval = interval;
    out_.health.at_most = start + tries * (interval + timeout);
    return ok_status();
  }

  Status health_test(const Value& test) {
    std::string& line = out_.health.command;
    if (const std::string* s = test.string()) {
      line = *s;
      return ok_status();
    }
    const Array* words = test.array();
    if (words == nullptr || words->empty() || (*words)[0].string() == nullptr)
      return unread("healthcheck.test");
    const std::string& kind = *(*words)[0].string();
    if (kind == "NONE") return ok_status();
    if (kind == "CMD-SHELL" && words->size() == 2 && (*words)[1].string() != nullptr) {
      line = *(*words)[1].string();
      return ok_status();
    }
    if (kind != "CMD") return unread("healthcheck.test");
    for (std::size_t i = 1; i < words->size(); ++i) {
      const auto word = scalar_text((*words)[i]);
      if (!word) return unread("healthcheck.test");
      line += (line.empty() ? "" : " ") + shell_quoted(*word);
    }
    return ok_status();
  }

  Status environment() {
    const Value* v = at("environment");
    if (v == nullptr) return ok_status();
    if (const Array* a = v->array()) {
      for (const Value& item : *a) {
        if (item.string() == nullptr) return unread("environment");
        const std::size_t equals = item.string()->find('=');
        if (equals == std::string::npos)
          out_.environment.emplace_back(*item.string(), std::nullopt);
        else
          out_.environment.emplace_back(item.string()->substr(0, equals),
                                        item.string()->substr(equals + 1));
      }
    } else if (const Object* o = v->object()) {
      for (const Member& m : *o) out_.environment.emplace_back(m.key, scalar_text(m.value));
    }
    return ok_status();
  }

  Status volumes() {
    const Value* v = at("volumes");
    if (v == nullptr) return ok_status();
    if (v->array() == nullptr) return unread("volumes");
    for (const Value& item : *v->array()) {
      ServicePlan::Mount mount;
      if (const std::string* s = item.string()) {
        const std::size_t first = s->find(':');
        if (first == std::string::npos) return not_known(out_.name, "a volume without a source");
        const std::size_t second = s->find(':', first + 1);
        mount.source = s->substr(0, first);
        mount.target =
            s->substr(first + 1, second == std::string::npos ? second : second - first - 1);
        const std::string mode = second == std::string::npos ? "rw" : s->substr(second + 1);
        if (mode != "ro" && mode != "rw")
          return not_known(out_.name, "the volume mode \"" + mode + "\"");
        mount.read_only = mode == "ro";
      } else {
        PROCTOR_CHECK_OK(long_mount(item, mount));
      }
      out_.mounts.push_back(std::move(mount));
    }
    return ok_status();
  }

  Status long_mount(const Value& item, ServicePlan::Mount& mount) {
    if (item.object() == nullptr) return unread("volumes");
    for (const Member& m : *item.object()) {
      if (m.key == "source" && m.value.string() != nullptr)
        mount.source = *m.value.string();
      else if (m.key == "target" && m.value.string() != nullptr)
        mount.target = *m.value.string();
      else if (m.key == "read_only" && m.value.boolean() != nullptr)
        mount.read_only = *m.value.boolean();
      else if (m.key != "type")
        return unknown("volumes[]." + m.key);
    }
    return ok_status();
  }

  const Object& s_;
  ServicePlan out_;
};
}  // namespace

Result<std::vector<std::string>> split_command(std::string_view line) {
  std::vector<std::string> out;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\\' && quote != '\'') {
      if (++i == line.size()) return invalid("a command ends in a backslash");
      if (quote == '"' && std::string_view("\\\"$`").find(line[i]) == std::string_view::npos)
        word += c;
      word += line[i];
      in_word = true;
    } else if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      if (in_word) out.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != 0) return invalid("a command has an open quote");
  if (in_word) out.push_back(std::move(word));
  return out;
}

Result<std::vector<ServicePlan>> plan_services(const Value& compose) {
  const Object* services = object_at(compose, "services");
  if (services == nullptr) return invalid("docker-compose.yml has no services");
  for (const Member& m : *compose.object())
    if (m.key != "services" && m.key != "networks" && m.key != "volumes" && m.key != "version" &&
        m.key != "name" && !m.key.starts_with("x-"))
      return Error{kBeyondSubset, fmt::format("\"{}\" {}", printable(m.key), kNeedsCompose)};
  std::vector<ServicePlan> out;
  for (const Member& m : *services) {
    if (m.value.object() == nullptr) return not_known(m.key, "no mapping");
    Value service = m.value;
    if (Status done = interpolate(service); !done.ok())
      return in_context("service " + printable(m.key), std::move(done).error());
    PROCTOR_TRY(ServicePlan plan, ServiceReader(m.key, *service.object()).run());
    out.push_back(std::move(plan));
  }
  std::ranges::sort(out, {}, &ServicePlan::name);
  for (const ServicePlan& p : out)
    for (const std::string& d : p.depends_on)
      if (services->find(d) == nullptr)
        return invalid("service {} depends on \"{}\", which there is not", printable(p.name),
                       printable(d));
  return out;
}

Result<EnvPairs> parse_env_file(std::string_view text) {
  EnvPairs out;
  std::size_t number = 0;
  const auto trim = [](std::string_view s) { return trimmed(s, " \t\r"); };
  while (!text.empty()) {
    std::string_view line = trim(take_until(text, '\n'));
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    if (take_word(line, "export ")) line = trim(line);
    const std::size_t equals = line.find('=');
    if (equals == 0) return invalid("line {} has no name", number);
    if (equals == std::string_view::npos) {
      out.emplace_back(std::string(line), std::nullopt);
      continue;
    }
    std::string_view value = trim(line.substr(equals + 1));
    const bool quoted =
        2 <= value.size() && (value[0] == '"' || value[0] == '\'') && value.back() == value[0];
    if (quoted)
      value = value.substr(1, value.size() - 2);
    else if (const std::size_t comment = value.find(" #"); comment != std::string_view::npos)
      value = trim(value.substr(0, comment));
    out.emplace_back(std::string(trim(line.substr(0, equals))), std::string(value));
  }
  return out;
}
}  // namespace proctor::cvdp
