#include "coordinator/cvdp/run/agent.h"

#include <algorithm>
#include <map>

#include "common/base/apply.h"
#include "common/base/command_line.h"
#include "common/base/json_fields.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/base/subprocess.h"
#include "common/base/text.h"
#include "common/contract/bundle.h"
#include "common/contract/contract_digest.h"
#include "common/contract/document.h"
#include "common/contract/file_source.h"
#include "common/contract/method_parser.h"

namespace proctor::cli {
namespace {
// Git on an index and objects of its own: the campaign's repository stays as it is.
class Scratch {
 public:
  Scratch(fs::path repository, fs::path dir)
      : repository_(std::move(repository)), dir_(std::move(dir)) {}

  Result<std::string> operator()(const std::vector<std::string>& args,
                                 std::string bytes = {}) const {
    CommandSpec spec = apply_git(repository_, args);
    spec.env->insert({{"GIT_INDEX_FILE", (dir_ / "index").string()},
                      {"GIT_OBJECT_DIRECTORY", (dir_ / "objects").string()},
                      {"GIT_ALTERNATE_OBJECT_DIRECTORIES", (repository_ / "objects").string()}});
    spec.stdin_bytes = std::move(bytes);
    spec.output_max = 4 * limits::kPatchBytes;
    PROCTOR_TRY(CommandOutcome done, run_command(spec));
    if (!done.success() || done.output_cut)
      return cvdp::invalid("git {}: {}", args.front(), printable(done.describe(), 500));
    return std::move(done.out);
  }

 private:
  fs::path repository_, dir_;
};

struct RawChange {
  std::string before, after;  // blobs; empty: no plain file
  std::string path;
};

bool is_plain(std::string_view mode) {
  return mode == "100644" || mode == "100755";
}

// ":100644 100755 OLD NEW M" and the path, each ended by a zero.
std::vector<RawChange> read_raw(const std::string& raw) {
  std::vector<RawChange> out;
  for (std::string_view rest = raw; take_word(rest, ":");) {
    const std::vector<std::string_view> words = split(take_until(rest, '\0'), ' ');
    const std::string path(take_until(rest, '\0'));
    if (words.size() != 5 || path.empty()) continue;
    out.push_back({std::string(is_plain(words[0]) ? words[2] : ""),
                   std::string(is_plain(words[1]) ? words[3] : ""), path});
  }
  return out;
}

// "ID blob SIZE", a newline, the bytes, a newline.
Result<std::map<std::string, std::string>> read_blobs(const Scratch& git,
                                                      const std::vector<RawChange>& changes) {
  std::string ids;
  for (const RawChange& c : changes)
    for (const std::string& id : {c.before, c.after})
      if (!id.empty()) ids += id + "\n";
  PROCTOR_TRY(const std::string said, git({"cat-file", "--batch"}, ids));
  std::map<std::string, std::string> out;
  for (std::string_view rest = said; !rest.empty();) {
    const std::vector<std::string_view> words = split(take_until(rest, '\n'), ' ');
    const auto size = words.size() == 3 ? whole_number<std::size_t>(words[2]) : std::nullopt;
    if (!size || rest.size() < *size) return cvdp::invalid("git cat-file: unexpected output");
    out[std::string(words[0])] = rest.substr(0, *size);
    rest.remove_prefix(std::min(*size + 1, rest.size()));
  }
  return out;
}
}  // namespace

Result<std::vector<cvdp::AgentChange>> changes_of(const fs::path& repository,
                                                  const std::string& branch,
                                                  const std::string& patch) {
  PROCTOR_TRY(const TempDir dir, TempDir::create("proctor-cvdp"));
  PROCTOR_CHECK_OK(make_dirs(dir.path() / "objects"));
  const Scratch git(fs::absolute(repository), dir.path());
  const std::string commit = "refs/heads/" + branch;
  PROCTOR_CHECK_OK(git({"read-tree", commit}));
  PROCTOR_CHECK_OK(git({"apply", "--cached", "--whitespace=nowarn", "-"}, patch));
  PROCTOR_TRY(const std::string raw, git({"diff-index", "--cached", "--raw", "-z", "--no-renames",
                                          "--no-abbrev", commit}));
  const std::vector<RawChange> changed = read_raw(raw);
  PROCTOR_TRY(const auto blobs, read_blobs(git, changed));
  std::vector<cvdp::AgentChange> out;
  const auto bytes = [&blobs](const std::string& id) {
    const auto it = blobs.find(id);
    return it == blobs.end() ? std::nullopt : std::optional(it->second);
  };
  for (const RawChange& c : changed) {
    cvdp::AgentChange change{c.path, bytes(c.before), bytes(c.after)};
    if (change.before || change.after) out.push_back(std::move(change));
  }
  return out;
}

void add_agent_flags(Command command, AgentFlags& flags) {
  command.add_option("-g,--agent", flags.image, "the image of an agent that works on each problem");
  command.add_option("--agent-secret", flags.given.secrets,
                     "NAME of a variable of the workers that the agent's image is given, such as "
                     "OPENAI_USER_KEY; may be given again");
  command.add_flag("--agent-network", flags.given.network, "give the agent's image a network");
  command.add_option("--agent-method", flags.method_file,
                     "instead of an image: a YAML file with one method of a campaign");
}

Status check_agent(const AgentFlags& flags) {
  if (!flags.image.empty() && !flags.method_file.empty())
    return cvdp::invalid("an agent is an image or a method, not both: --agent or --agent-method");
  if (flags.image.empty() && (!flags.given.secrets.empty() || flags.given.network))
    return cvdp::invalid(
        "--agent-secret and --agent-network are of an agent's image (--agent); a method has "
        "its own environment");
  return ok_status();
}

Result<Method> load_agent_method(const std::string& file) {
  const auto say = [&](Error e) { return in_context("--agent-method " + file, std::move(e)); };
  const Result<std::string> text = read_file(file, limits::kConfigFileBytes);
  if (!text.ok()) return say({Errc::kInvalid, text.error().detail});
  std::error_code ec;
  const fs::path absolute = fs::absolute(file, ec).lexically_normal();
  if (ec) return say(errno_error(file, ec.value()));
  const auto folder = FolderFiles::open(absolute.parent_path());
  if (!folder.ok()) return say(folder.error());
  Diagnostics out;
  const auto document = read_document(*text, format_of(file), file, out);
  if (!document) return as_error(out);
  Problems problems(file, out);
  Method method = read_method(document->root, "", **folder, problems);
  if (!out.empty()) return as_error(out);
  if (method.kind != Method::Kind::kCommand)
    return say(cvdp::invalid(
        "not a method with a program of its own: name and command, as under methods of "
        "campaign.yaml"));
  return method;
}

std::string method_text(const Method& method) {
  const auto form = parse_json(canonical_form(method));
  PROCTOR_ASSERT(form.ok());
  return form->at("method").dump();
}

Status place_method_files(const Method& method, const fs::path& campaign) {
  for (const ReferencedFile& file : method.files) {
    const fs::path to = campaign / file.path;
    std::error_code ec;
    if (fs::exists(fs::symlink_status(to, ec)))
      return cvdp::invalid(
          "the agent's file {} has the name of one of the campaign's own: call it otherwise",
          file.path);
    PROCTOR_CHECK_OK(make_dirs(to.parent_path()));
    PROCTOR_CHECK_OK(write_file(to, file.bytes, Durability::kLazy, file.mode));
  }
  return ok_status();
}

}  // namespace proctor::cli
