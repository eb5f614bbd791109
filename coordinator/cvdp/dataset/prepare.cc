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
    const std::string* own = text_at(context, key);
    return !flag.empty() ? flag : own == nullptr ? std::string() : *own;
  };
  HeavySource source{named("repo", repo_url), named("commit", commit_hash)};
  if (source.repository.empty() || source.commit.empty()) {
    if (!record.id.heavy) return out;
    return invalid("context: a heavy record names repo and commit");
  }
  if (!is_commit(source.commit))
    return invalid("context.commit: expected 40 or 64 hex digits, found \"{}\"",
                   printable(source.commit, 80));
  if (source.repository.starts_with('-') ||
      source.repository.find_first_of(std::string_view("\0\n\r", 3)) != std::string::npos)
    return invalid("context.repo: \"{}\" is no repository", printable(source.repository));
  out = std::move(source);
  return out;
}

Result<std::string> resolve_reference(const std::string& reference, const std::string& base,
                                      const std::function<bool(const std::string&)>& exists) {
  if (reference.starts_with('/') || reference.find("://") != std::string::npos ||
      reference.find('@') != std::string::npos)
    return reference;
  if (base.empty())
    return invalid("context.repo: \"{}\" is a bare name, and CVDP_HEAVY_REPOS_PATH is not set",
                   printable(reference));
  if (!is_safe_relative(reference))
    return invalid("context.repo: \"{}\" leads out of {}", printable(reference), base);
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
    if (!is_safe_relative(m.key)) return invalid("patch: \"{}\" leads outside", printable(m.key));
    const std::string& text = *m.value.string();
    // Patches of datasets have hunks alone; headers that are there name the wrong root.
    const std::size_t hunk = text.starts_with("@@") ? 0 : text.find("\n@@");
    if (hunk == std::string::npos) return invalid("patch.{}: no hunk", printable(m.key));
    const std::string body = ended(text.substr(hunk == 0 ? 0 : hunk + 1));
    const bool made = body.starts_with("@@ -0,0 "),
               gone = body.substr(0, body.find('\n')).find(" +0,0 ") != std::string::npos;
    out +=
        fmt::format("diff --git a/{0} b/{0}\n{1}{2}--- {3}\n+++ {4}\n{5}", m.key,
                    made ? "new file mode 100644\n" : "", gone ? "deleted file mode 100644\n" : "",
                    made ? "/dev/null" : "a/" + m.key, gone ? "/dev/null" : "b/" + m.key, body);
  }
  return out;
}

std::string golden_patch_text(const Record& record) {
  std::string out = "# Golden reference solution\n\n";
  const Object* solution = solution_files(record);
  if (solution == nullptr) return out;
  for (const Member& m : *solution)
    if (const std::string* text = m.value.string(); text != nullptr && !text->empty())
      out += fmt::format("# File: {}\n{}\n\n", m.key, *text);
  return out;
}

namespace {
class Preparation {
 public:
  Preparation(const Record& record, const PrepareSettings& settings)
      : record_(record), settings_(settings) {}

  Result<Prepared> run() {
    out_.folder = fmt::format("{}/harness/{}", record_.id.repository, record_.id.issue);
    if (record_.id.heavy && value_at(context_files(record_), "repo") != nullptr) {
      out_.folders = {"external", "rundir"};
    } else {
      out_.folders = {"docs", "rtl", "verif", "src", "rundir"};
      PROCTOR_CHECK_OK(context());
      if (!settings_.no_patch) PROCTOR_CHECK_OK(solution());
    }
    if (record_.shape == Shape::kAgentic) prompt_file();
    if (const Object* harness = harness_files(record_)) PROCTOR_CHECK_OK(harness_of(*harness));
    return conflict_free();
  }

 private:
  Status put(const std::string& field, const std::string& path, std::string bytes) {
    if (!is_safe_relative(path))
      return invalid("{}: \"{}\" is no path inside the problem's folder", field, printable(path));
    const auto it = std::ranges::find(out_.files, path, &AnsweredFile::path);
    bytes = substitute(std::move(bytes), settings_.names);
    if (it != out_.files.end())
      it->text = std::move(bytes);
    else
      out_.files.push_back({path, std::move(bytes)});
    return ok_status();
  }

  Status put_value(const std::string& field, const Member& m) {
    if (m.value.string() == nullptr)
      out_.warnings.push_back(fmt::format("{}.{} is {}: an empty file, as upstream", field,
                                          printable(m.key), m.value.kind()));
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
      const std::string* response = text_at(object_at(record_.value, "output"), "response");
      if (is_comprehension(category_number(record_.category)) && response != nullptr &&
          !response->empty())
        return put("output.response", "subjective.txt", *response);
      return ok_status();
    }
    if (files == nullptr) return ok_status();
    for (const Member& m : *files) {
      const std::string* patch = m.value.string();
      if (patch == nullptr)
        return invalid("patch.{} is {}: there is no solution to apply", printable(m.key),
                       m.value.kind());
      const std::string* before = text_at(context_files(record_), m.key);
      PROCTOR_TRY(Applied applied,
                  apply_patch(before == nullptr ? std::string_view() : *before, *patch));
      for (const std::string& w : applied.warnings)
        out_.warnings.push_back("patch." + printable(m.key) + ": " + w);
      PROCTOR_CHECK_OK(put("patch", m.key, std::move(applied.text)));
    }
    return ok_status();
  }

  void prompt_file() {
    out_.files.push_back({"prompt.json", substitute(prompt_json(record_), settings_.names)});
  }

  Status harness_of(const Object& files) {
    for (const Member& m : files) {
      if (!m.key.ends_with("docker-compose.yml") || m.value.string() == nullptr ||
          m.value.string()->empty()) {
        PROCTOR_CHECK_OK(put_value("harness", m));
        continue;
      }
      Result<ComposeFile> compose = normalise_compose(
          *m.value.string(), {settings_.names, settings_.shared_network, needs_eda(record_.value)});
      if (!compose.ok()) return in_context("harness." + printable(m.key), compose.error());
      for (const std::string& w : compose->warnings)
        out_.warnings.push_back("harness." + printable(m.key) + ": " + w);
      PROCTOR_CHECK_OK(put("harness", m.key, std::move(compose->text)));
    }
    return ok_status();
  }

  // A file cannot be a folder of another.
  Result<Prepared> conflict_free() {
    std::vector<std::string> paths = out_.folders;
    for (std::string& p : paths) p += "/";
    for (const AnsweredFile& f : out_.files) paths.push_back(f.path);
    std::sort(paths.begin(), paths.end());
    for (const AnsweredFile& f : out_.files) {
      const std::string as_folder = f.path + "/";
      const auto it = std::lower_bound(paths.begin(), paths.end(), as_folder);
      if (it != paths.end() && it->starts_with(as_folder))
        return invalid("\"{}\" is a file and a folder", printable(f.path));
    }
    return std::move(out_);
  }

  const Record& record_;
  const PrepareSettings& settings_;
  Prepared out_;
};

bool has_harness(const Record& record) {
  const Object* harness = harness_files(record);
  return record.shape == Shape::kAgentic || (harness != nullptr && !harness->empty());
}
}  // namespace

std::string prompt_json(const Record& record) {
  const std::string* text = prompt_of(record);
  return write_json(object_of("prompt", text == nullptr ? Value() : Value(*text)));
}

Result<Prepared> prepare(const Record& record, const PrepareSettings& settings) {
  return Preparation(record, settings).run();
}

std::string prompt_response_line(const Record& record, const std::vector<AnsweredFile>* files,
                                 bool solution_alone) {
  Object input, output;
  if (files != nullptr && context_files(record) != nullptr) input = *context_files(record);
  if (files != nullptr)
    for (const AnsweredFile& f : *files) {
      if (solution_alone && value_at(solution_files(record), f.path) == nullptr) continue;
      const Value* before = input.find(f.path);
      if (before == nullptr || *before != Value(f.text)) output.set(f.path, f.text);
    }
  return write_json(
      object_of(record.id.text, object_of("input", std::move(input), "output", std::move(output),
                                          "obj", files != nullptr && has_harness(record))));
}
}  // namespace proctor::cvdp
