#include "coordinator/cvdp/dataset/prepare.h"

#include <algorithm>

#include "common/base/files.h"
#include "common/base/text.h"
#include "coordinator/cvdp/dataset/transform.h"

namespace proctor::cvdp {
namespace {
bool is_commit(std::string_view text) {
  return (text.size() == 40 || text.size() == 64) && std::ranges::all_of(text, [](char c) {
           return ('0' <= c && c <= '9') || ('a' <= c && c <= 'f');
         });
}

bool is_place(std::string_view reference) {
  return reference.starts_with('/') || reference.find("://") != std::string_view::npos ||
         reference.find('@') != std::string_view::npos;
}

std::string ended(std::string text) {
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  return text;
}
}  // namespace

Result<std::optional<HeavySource>> heavy_source(const Record& record, const std::string& repo_url,
                                                const std::string& commit_hash) {
  std::optional<HeavySource> out;
  if (record.shape != Shape::kAgentic) return out;
  const Object* context = context_files(record);
  const auto named = [&](const char* key, const std::string& flag) {
    const std::string* own = context == nullptr ? nullptr : text_at(*context, key);
    return !flag.empty() ? flag : own == nullptr ? std::string() : *own;
  };
  HeavySource source{named("repo", repo_url), named("commit", commit_hash)};
  if (source.repository.empty() || source.commit.empty()) {
    if (!record.id.heavy) return out;
    return Error{Errc::kInvalid, "context: a heavy record names repo and commit"};
  }
  if (!is_commit(source.commit))
    return Error{Errc::kInvalid, "context.commit: expected 40 or 64 hex digits, found \"" +
                                     printable(source.commit, 80) + "\""};
  if (source.repository.starts_with('-') ||
      source.repository.find_first_of(std::string_view("\0\n\r", 3)) != std::string::npos)
    return Error{Errc::kInvalid,
                 "context.repo: \"" + printable(source.repository) + "\" is no repository"};
  out = std::move(source);
  return out;
}

Result<std::string> resolve_reference(const std::string& reference, const std::string& base,
                                      const std::function<bool(const std::string&)>& exists) {
  if (is_place(reference)) return reference;
  if (base.empty())
    return Error{Errc::kInvalid, "context.repo: \"" + printable(reference) +
                                     "\" is a bare name, and CVDP_HEAVY_REPOS_PATH is not set"};
  if (!is_safe_relative(reference))
    return Error{Errc::kInvalid,
                 "context.repo: \"" + printable(reference) + "\" leads out of " + base};
  const std::string folder = base + "/" + reference;
  if (!exists(folder) && exists(folder + ".bundle")) return folder + ".bundle";
  return folder;
}

std::string github_over_ssh(const std::string& url) {
  constexpr std::string_view kHost = "github.com/";
  const std::size_t at = url.find(kHost);
  if (at == std::string::npos) return url;
  std::string path = url.substr(at + kHost.size());
  while (path.ends_with('/')) path.pop_back();
  if (!path.ends_with(".git")) path += ".git";
  return "git@github.com:" + path;
}

std::string payload_folder(const std::string& reference) {
  std::string_view last = reference;
  while (last.ends_with('/')) last.remove_suffix(1);
  if (const std::size_t slash = last.rfind('/'); slash != std::string_view::npos)
    last.remove_prefix(slash + 1);
  const auto has = [last](std::string_view part) {
    return last.find(part) != std::string_view::npos;
  };
  return (has("cvdp_") || has("cvdp-")) && !has("_ext_") ? "external" : "";
}

Result<std::string> heavy_reference(const Record& record) {
  std::string out;
  const Object* patches = solution_files(record);
  if (patches == nullptr) return out;
  for (const Member& m : *patches) {
    if (m.value.string() == nullptr || m.value.string()->empty()) continue;
    if (!is_safe_relative(m.key))
      return Error{Errc::kInvalid, "patch: \"" + printable(m.key) + "\" leads outside"};
    const std::string& text = *m.value.string();
    // Patches of datasets have hunks alone; headers that are there name the wrong root.
    const std::size_t hunk = text.starts_with("@@") ? 0 : text.find("\n@@");
    if (hunk == std::string::npos)
      return Error{Errc::kInvalid, "patch." + printable(m.key) + ": no hunk"};
    const std::string body = ended(text.substr(hunk == 0 ? 0 : hunk + 1));
    const bool made = body.starts_with("@@ -0,0 "),
               gone = body.substr(0, body.find('\n')).find(" +0,0 ") != std::string::npos;
    out += "diff --git a/" + m.key + " b/" + m.key + "\n";
    if (made) out += "new file mode 100644\n";
    if (gone) out += "deleted file mode 100644\n";
    out += (made ? std::string("--- /dev/null") : "--- a/" + m.key) + "\n" +
           (gone ? std::string("+++ /dev/null") : "+++ b/" + m.key) + "\n" + body;
  }
  return out;
}

std::string golden_patch_text(const Record& record) {
  std::string out = "# Golden reference solution\n\n";
  const Object* solution = solution_files(record);
  if (solution == nullptr) return out;
  for (const Member& m : *solution)
    if (const std::string* text = m.value.string(); text != nullptr && !text->empty())
      out += "# File: " + m.key + "\n" + *text + "\n\n";
  return out;
}

namespace {
constexpr std::string_view kCompose = "docker-compose.yml";

class Preparation {
 public:
  Preparation(const Record& record, const PrepareSettings& settings)
      : record_(record), settings_(settings) {}

  Result<Prepared> run() {
    out_.folder = record_.id.repository + "/harness/" + std::to_string(record_.id.issue);
    const Object* harness = harness_files(record_);
    out_.harness = record_.shape == Shape::kAgentic || (harness != nullptr && !harness->empty());
    const bool heavy = record_.id.heavy && context_files(record_) != nullptr &&
                       context_files(record_)->find("repo") != nullptr;
    if (heavy) {
      out_.folders = {"external", "rundir"};
    } else {
      out_.folders = {"docs", "rtl", "verif", "src", "rundir"};
      PROCTOR_CHECK_OK(context());
      if (settings_.mode == PrepareMode::kGolden) PROCTOR_CHECK_OK(solution());
    }
    if (record_.shape == Shape::kAgentic) prompt_file();
    if (harness != nullptr) PROCTOR_CHECK_OK(harness_of(*harness));
    return conflict_free();
  }

 private:
  Status put(const std::string& field, const std::string& path, std::string bytes) {
    if (!is_safe_relative(path))
      return Error{Errc::kInvalid,
                   field + ": \"" + printable(path) + "\" is no path inside the problem's folder"};
    const auto it = std::find_if(out_.files.begin(), out_.files.end(),
                                 [&](const PreparedFile& f) { return f.path == path; });
    bytes = substitute(std::move(bytes), settings_.names);
    if (it != out_.files.end())
      it->bytes = std::move(bytes);
    else
      out_.files.push_back({path, std::move(bytes)});
    return ok_status();
  }

  Status put_value(const std::string& field, const Member& m) {
    if (m.value.string() == nullptr)
      out_.warnings.push_back(field + "." + printable(m.key) + " is " +
                              std::string(m.value.kind()) + ": an empty file, as upstream");
    return put(field, m.key, m.value.string() == nullptr ? "" : *m.value.string());
  }

  Status context() {
    const std::string field = record_.shape == Shape::kAgentic ? "context" : "input.context";
    if (const Object* files = context_files(record_))
      for (const Member& m : *files) PROCTOR_CHECK_OK(put_value(field, m));
    return ok_status();
  }

  Status solution() {
    const Object* files = solution_files(record_);
    if (record_.shape == Shape::kCopilot) {
      if (files != nullptr)
        for (const Member& m : *files) PROCTOR_CHECK_OK(put_value("output.context", m));
      const Object* output = object_at(record_.value, "output");
      const std::string* response = output == nullptr ? nullptr : text_at(*output, "response");
      if (is_comprehension(category_number(record_.category)) && response != nullptr &&
          !response->empty())
        return put("output.response", "subjective.txt", *response);
      return ok_status();
    }
    if (files == nullptr) return ok_status();
    for (const Member& m : *files) {
      const std::string* patch = m.value.string();
      if (patch == nullptr)
        return Error{Errc::kInvalid, "patch." + printable(m.key) + " is " +
                                         std::string(m.value.kind()) +
                                         ": there is no solution to apply"};
      const std::string* before =
          context_files(record_) == nullptr ? nullptr : text_at(*context_files(record_), m.key);
      PROCTOR_TRY(Applied applied,
                  apply_patch(before == nullptr ? std::string_view() : *before, *patch));
      for (const std::string& w : applied.warnings)
        out_.warnings.push_back("patch." + printable(m.key) + ": " + w);
      PROCTOR_CHECK_OK(put("patch", m.key, std::move(applied.text)));
    }
    return ok_status();
  }

  void prompt_file() {
    Object prompt;
    const std::string* text = prompt_of(record_);
    prompt.append("prompt", text == nullptr ? Value() : Value(*text));
    out_.files.push_back(
        {"prompt.json", substitute(write_json(Value(std::move(prompt))), settings_.names)});
  }

  Status harness_of(const Object& files) {
    for (const Member& m : files) {
      if (!m.key.ends_with(kCompose) || m.value.string() == nullptr || m.value.string()->empty()) {
        PROCTOR_CHECK_OK(put_value("harness", m));
        continue;
      }
      Result<ComposeFile> compose = normalise_compose(
          *m.value.string(), {settings_.names, settings_.shared_network, needs_eda(record_.value)});
      if (!compose.ok()) return in_context("harness." + printable(m.key), compose.error());
      for (const std::string& w : compose->warnings)
        out_.warnings.push_back("harness." + printable(m.key) + ": " + w);
      if (m.key == kCompose)
        for (const Member& s : *object_at(compose->value, "services"))
          out_.services.push_back(s.key);
      PROCTOR_CHECK_OK(put("harness", m.key, std::move(compose->text)));
    }
    std::sort(out_.services.begin(), out_.services.end());
    return ok_status();
  }

  // A file cannot be a folder of another.
  Result<Prepared> conflict_free() {
    std::vector<std::string> paths = out_.folders;
    for (std::string& p : paths) p += "/";
    for (const PreparedFile& f : out_.files) paths.push_back(f.path);
    std::sort(paths.begin(), paths.end());
    for (const PreparedFile& f : out_.files) {
      const std::string as_folder = f.path + "/";
      const auto it = std::lower_bound(paths.begin(), paths.end(), as_folder);
      if (it != paths.end() && it->starts_with(as_folder))
        return Error{Errc::kInvalid, "\"" + printable(f.path) + "\" is a file and a folder"};
    }
    return std::move(out_);
  }

  const Record& record_;
  const PrepareSettings& settings_;
  Prepared out_;
};

std::string response_line(const Record& record, Object input, Object output, bool obj) {
  Object line;
  Object inner;
  inner.append("input", std::move(input));
  inner.append("output", std::move(output));
  inner.append("obj", obj);
  line.append(record.id.text, std::move(inner));
  return write_json(Value(std::move(line)));
}
}  // namespace

Result<Prepared> prepare(const Record& record, const PrepareSettings& settings) {
  return Preparation(record, settings).run();
}

std::string prompt_response_line(const Record& record, const Prepared* prepared) {
  Object input;
  Object output;
  if (prepared != nullptr && context_files(record) != nullptr) input = *context_files(record);
  const Object* solution = solution_files(record);
  if (prepared != nullptr)
    for (const PreparedFile& f : prepared->files) {
      if (solution == nullptr || solution->find(f.path) == nullptr) continue;
      const Value* before = input.find(f.path);
      if (before == nullptr || *before != Value(f.bytes)) output.append(f.path, f.bytes);
    }
  return response_line(record, std::move(input), std::move(output),
                       prepared != nullptr && prepared->harness);
}

std::string answered_response_line(const Record& record, const std::vector<AnsweredFile>* answer) {
  Object input;
  Object output;
  if (answer != nullptr && context_files(record) != nullptr) input = *context_files(record);
  if (answer != nullptr)
    for (const AnsweredFile& f : *answer) {
      const Value* before = input.find(f.path);
      if (before == nullptr || *before != Value(f.text)) output.set(f.path, f.text);
    }
  const Object* harness = harness_files(record);
  const bool runs = record.shape == Shape::kAgentic || (harness != nullptr && !harness->empty());
  return response_line(record, std::move(input), std::move(output), answer != nullptr && runs);
}
}  // namespace proctor::cvdp
