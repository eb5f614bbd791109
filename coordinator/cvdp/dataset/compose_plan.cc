// What a compose file asks to be run, for the subset that harnesses use.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/contract/fields.h"
#include "coordinator/cvdp/dataset/compose.h"

namespace proctor::cvdp {
namespace {

// Known keys; the last few say nothing about what runs.
constexpr std::array<std::string_view, 19> kServiceKeys = {
    "image",          "build",    "command",     "entrypoint", "environment",
    "env_file",       "volumes",  "working_dir", "depends_on", "networks",
    "container_name", "hostname", "tty",         "stdin_open", "labels",
    "restart",        "platform", "pull_policy", "healthcheck"};

Error not_known(const std::string& service, std::string_view what) {
  return {Errc::kInvalid, "service " + printable(service) + ": " + printable(what) + " " +
                              std::string(kNeedsCompose)};
}

// Numbers and truth values as compose prints them into an environment.
std::optional<std::string> scalar_text(const Value& v) {
  if (const std::string* s = v.string()) return *s;
  if (const Number* n = v.number()) return n->text;
  if (const bool* b = v.boolean()) return *b ? "true" : "false";
  return std::nullopt;
}

bool is_name_char(char c) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '_';
}

// One word of a shell's line.
std::string shell_quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// What stands between "${" and "}", with nothing in the environment.
Result<std::string> replacement(std::string_view inside) {
  const auto unknown = [&] {
    return Error{Errc::kInvalid, "\"${" + printable(inside) + "}\" " + std::string(kNeedsCompose)};
  };
  std::size_t end = 0;
  while (end < inside.size() && is_name_char(inside[end])) ++end;
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
        return Error{Errc::kInvalid, "\"" + printable(text) + "\" has an open \"${\""};
      inside = rest.substr(1, close - 1);
      i += close + 1;
    } else {
      std::size_t end = 0;
      while (end < rest.size() && is_name_char(rest[end])) ++end;
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
        return not_known(out_.name, "\"" + m.key + "\"");
    out_.image = text("image");
    out_.working_dir = text("working_dir");
    PROCTOR_CHECK_OK(build());
    PROCTOR_CHECK_OK(words("command", out_.command));
    PROCTOR_CHECK_OK(words("entrypoint", out_.entrypoint));
    PROCTOR_CHECK_OK(environment());
    PROCTOR_CHECK_OK(names("env_file", out_.env_files));
    PROCTOR_CHECK_OK(dependencies());
    PROCTOR_CHECK_OK(health());
    PROCTOR_CHECK_OK(names("networks", out_.networks));
    PROCTOR_CHECK_OK(volumes());
    if (out_.image.empty() && out_.build.empty())
      return not_known(out_.name, "no image and no build");
    return std::move(out_);
  }

 private:
  const Value* at(std::string_view key) const {
    const Value* v = s_.find(key);
    return v == nullptr || v->is_null() ? nullptr : v;
  }
  std::string text(std::string_view key) const {
    const Value* v = at(key);
    return v == nullptr || v->string() == nullptr ? "" : *v->string();
  }

  Status build() {
    const Value* v = at("build");
    if (v == nullptr) return ok_status();
    out_.dockerfile = "Dockerfile";
    if (const std::string* s = v->string()) {
      out_.build = *s;
      return ok_status();
    }
    if (v->object() == nullptr) return not_known(out_.name, "this \"build\"");
    out_.build = ".";
    for (const Member& m : *v->object()) {
      if (m.key == "context" && m.value.string() != nullptr)
        out_.build = *m.value.string();
      else if (m.key == "dockerfile" && m.value.string() != nullptr)
        out_.dockerfile = *m.value.string();
      else
        return not_known(out_.name, "\"build." + m.key + "\"");
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
    if (v->array() == nullptr) return not_known(out_.name, std::string("this \"") + key + "\"");
    for (const Value& item : *v->array()) {
      const auto word = scalar_text(item);
      if (!word) return not_known(out_.name, std::string("this \"") + key + "\"");
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
        if (item.string() == nullptr)
          return not_known(out_.name, std::string("this \"") + key + "\"");
        to.push_back(*item.string());
      }
    } else if (const Object* o = v->object()) {
      for (const Member& m : *o) to.push_back(m.key);
    }
    return ok_status();
  }

  // A list of names, or a mapping with a condition each.
  Status dependencies() {
    const Value* v = at("depends_on");
    PROCTOR_CHECK_OK(names("depends_on", out_.depends_on));
    if (v == nullptr || v->object() == nullptr) return ok_status();
    for (const Member& m : *v->object()) {
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

  // "1m30s"; nothing: not a duration.
  static std::optional<std::chrono::milliseconds> duration_of(const Value& v) {
    if (v.string() == nullptr) return std::nullopt;
    const auto d = parse_duration(*v.string());
    return d.ok() ? std::optional(*d) : std::nullopt;
  }

  Status health() {
    const Value* v = at("healthcheck");
    if (v == nullptr) return ok_status();
    const auto unknown = [&](const std::string& key) {
      return not_known(out_.name, "this \"healthcheck" + key + "\"");
    };
    if (v->object() == nullptr) return unknown("");
    constexpr std::chrono::milliseconds kDefault{30'000};
    constexpr std::int64_t kTries = 3, kTriesMost = 1000;
    std::chrono::milliseconds interval = kDefault, timeout = kDefault, start{0};
    std::int64_t tries = kTries;
    for (const Member& m : *v->object()) {
      const auto d = duration_of(m.value);
      if (m.key == "test") {
        PROCTOR_CHECK_OK(health_test(m.value));
        continue;
      }
      if (m.key == "interval" && d)
        interval = *d;
      else if (m.key == "timeout" && d)
        timeout = *d;
      else if (m.key == "start_period" && d)
        start = *d;
      else if (m.key == "retries" && m.value.number() != nullptr)
        tries = std::atoll(m.value.number()->text.c_str());  // NOLINT: bounded below
      else
        return unknown("." + m.key);
    }
    if (tries < 1 || kTriesMost < tries) return unknown(".retries");
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
      return not_known(out_.name, "this \"healthcheck.test\"");
    const std::string& kind = *(*words)[0].string();
    if (kind == "NONE") return ok_status();
    if (kind == "CMD-SHELL" && words->size() == 2 && (*words)[1].string() != nullptr) {
      line = *(*words)[1].string();
      return ok_status();
    }
    if (kind != "CMD") return not_known(out_.name, "this \"healthcheck.test\"");
    for (std::size_t i = 1; i < words->size(); ++i) {
      const auto word = scalar_text((*words)[i]);
      if (!word) return not_known(out_.name, "this \"healthcheck.test\"");
      line += (line.empty() ? "" : " ") + shell_quoted(*word);
    }
    return ok_status();
  }

  Status environment() {
    const Value* v = at("environment");
    if (v == nullptr) return ok_status();
    if (const Array* a = v->array()) {
      for (const Value& item : *a) {
        if (item.string() == nullptr) return not_known(out_.name, "this \"environment\"");
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
    if (v->array() == nullptr) return not_known(out_.name, "this \"volumes\"");
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
    if (item.object() == nullptr) return not_known(out_.name, "this \"volumes\"");
    for (const Member& m : *item.object()) {
      if (m.key == "source" && m.value.string() != nullptr)
        mount.source = *m.value.string();
      else if (m.key == "target" && m.value.string() != nullptr)
        mount.target = *m.value.string();
      else if (m.key == "read_only" && m.value.boolean() != nullptr)
        mount.read_only = *m.value.boolean();
      else if (m.key != "type")
        return not_known(out_.name, "\"volumes[]." + m.key + "\"");
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
      if (++i == line.size()) return Error{Errc::kInvalid, "a command ends in a backslash"};
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
  if (quote != 0) return Error{Errc::kInvalid, "a command has an open quote"};
  if (in_word) out.push_back(std::move(word));
  return out;
}

Result<std::vector<ServicePlan>> plan_services(const Value& compose) {
  const Object* services = object_at(compose, "services");
  if (services == nullptr) return Error{Errc::kInvalid, "docker-compose.yml has no services"};
  for (const Member& m : *compose.object())
    if (m.key != "services" && m.key != "networks" && m.key != "volumes" && m.key != "version" &&
        m.key != "name" && !m.key.starts_with("x-"))
      return Error{Errc::kInvalid, "\"" + printable(m.key) + "\" " + std::string(kNeedsCompose)};
  std::vector<ServicePlan> out;
  for (const Member& m : *services) {
    if (m.value.object() == nullptr) return not_known(m.key, "no mapping");
    Value service = m.value;
    if (Status done = interpolate(service); !done.ok())
      return in_context("service " + printable(m.key), std::move(done).error());
    PROCTOR_TRY(ServicePlan plan, ServiceReader(m.key, *service.object()).run());
    out.push_back(std::move(plan));
  }
  std::sort(out.begin(), out.end(),
            [](const ServicePlan& a, const ServicePlan& b) { return a.name < b.name; });
  for (const ServicePlan& p : out)
    for (const std::string& d : p.depends_on)
      if (services->find(d) == nullptr)
        return Error{Errc::kInvalid, "service " + printable(p.name) + " depends on \"" +
                                         printable(d) + "\", which there is not"};
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
    if (equals == 0)
      return Error{Errc::kInvalid, "line " + std::to_string(number) + " has no name"};
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
