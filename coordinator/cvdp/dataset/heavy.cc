#include "coordinator/cvdp/dataset/heavy.h"

#include <algorithm>

#include "common/base/files.h"
#include "common/base/text.h"

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

}  // namespace proctor::cvdp
