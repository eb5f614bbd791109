#include "worker/workspace/extract.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <new>

#include "common/base/json.h"
#include "common/base/subprocess.h"
#include "common/base/text.h"
#include "worker/workspace/apart.h"
#include "worker/workspace/ignore_rules.h"
#include "worker/workspace/patch.h"
#include "worker/workspace/snapshot.h"

namespace proctor {
namespace {

// An edit of a large file makes a small patch, so contents may be larger than the patch; this much
// is read even when the patch must be tiny.
constexpr std::uint64_t kContentBytes = std::uint64_t{64} << 20;
constexpr std::size_t kAskedBytes = std::size_t{1} << 30;  // of a copy's files, mostly
constexpr std::size_t kNamesBytes = std::size_t{64} << 20;
constexpr std::size_t kHeadBytes = std::size_t{64} << 10;
// Ours to wait for a machine that is busy; what the tree takes is counted in CPU time.
constexpr std::chrono::minutes kPatience{20};

// Texts of any bytes, one after another, each ended by a NUL: no path holds one.
std::optional<std::string_view> next(std::string_view& rest) {
  const std::size_t end = rest.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view out = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return out;
}

std::string question(const Extraction& what, const Extractor& program, const fs::path& answer) {
  const Json head = {{"tree_dir", what.snapshot.tree_dir.string()},
                     {"dir", what.dir.string()},
                     {"kind", to_string(what.kind)},
                     {"setup", what.setup.string()},
                     {"copied", what.copied != nullptr},
                     {"content", what.content.hex()},
                     {"bytes_max", what.bytes_max},
                     {"kept", what.kept},
                     {"cpu_s", program.cpu.count()},
                     {"memory", program.memory},
                     {"answer", answer.string()}};
  std::string out = head.dump() + '\0';
  if (what.copied == nullptr) return out;
  for (const auto& [path, file] : *what.copied) {
    out += path + '\0';
    for (const std::int64_t n : {static_cast<std::int64_t>(file.inode), file.size,
                                 file.changed.tv_sec, file.changed.tv_nsec})
      out += std::to_string(n) + ' ';
    out += '\0';
  }
  return out;
}

Result<CopiedFiles> copied_in(std::string_view rest) {
  CopiedFiles out;
  while (const auto path = next(rest)) {
    const auto numbers = next(rest);
    if (!numbers) return Error{Errc::kInvalid, "extract: a file without its state"};
    const std::string text(*numbers);
    CopiedFile file;
    unsigned long long inode = 0;
    long long size = 0, seconds = 0, ns = 0;
    if (std::sscanf(text.c_str(), "%llu %lld %lld %lld", &inode, &size, &seconds, &ns) != 4)
      return Error{Errc::kInvalid, "extract: a file without its state"};
    file.inode = inode;
    file.size = size;
    file.changed = {seconds, ns};
    out.emplace(*path, file);
  }
  return out;
}

std::string answer_of(const Result<Patch>& patch) {
  const apart::Use use = apart::so_far();
  Json head = {{"ok", patch.ok()}, {"cpu_ms", use.cpu.count()}, {"memory_peak", use.memory_peak}};
  std::string names;
  if (patch.ok()) {
    head["files"] = patch->files;
    head["insertions"] = patch->insertions;
    head["deletions"] = patch->deletions;
    head["paths"] = patch->paths.size();
    for (const std::string& path : patch->paths) names += path + '\0';
    for (const std::string& path : patch->refused) names += path + '\0';
    head["refused"] = patch->refused.size();
    for (const std::string& place : patch->conflicts) names += place + '\0';
    head["conflicts"] = patch->conflicts.size();
    for (const std::string& path : patch->left_out) names += path + '\0';
    head["left_out"] = patch->left_out_count;
    head["names"] = names.size();
  } else {
    head["code"] = static_cast<int>(patch.error().code);
    head["why"] = printable(patch.error().detail);
  }
  std::string out = head.dump() + '\0' + names;
  if (patch.ok()) out += patch->diff;
  return out;
}

// The program is ours, what it read was not; so its answer is looked at, but believed.
Result<Patch> patch_in(const std::string& bytes) {
  const Error damaged{Errc::kUnavailable, "extract: an answer that cannot be read"};
  std::string_view rest = bytes;
  const auto head_text = next(rest);
  if (!head_text) return damaged;
  PROCTOR_TRY(const Json head, parse_json(*head_text, {kHeadBytes, 4}));
  const auto count = [&](const char* name) {
    const auto it = head.find(name);
    return it != head.end() && it->is_number_unsigned() ? it->get<std::uint64_t>() : 0;
  };
  Patch out;
  if (!head.value("ok", false))
    return Error{static_cast<Errc>(head.value("code", static_cast<int>(Errc::kUnavailable))),
                 head.value("why", "extract")};
  std::string_view names = rest.substr(0, std::min<std::size_t>(count("names"), rest.size()));
  rest.remove_prefix(names.size());
  const auto take = [&](std::vector<std::string>& list, std::uint64_t most) {
    while (list.size() < most) {
      const auto name = next(names);
      if (!name) return;
      list.emplace_back(*name);
    }
  };
  take(out.paths, count("paths"));
  take(out.refused, count("refused"));
  take(out.conflicts, count("conflicts"));
  take(out.left_out, Patch::kLeftOutListed);
  out.left_out_count = count("left_out");
  out.files = count("files");
  out.insertions = count("insertions");
  out.deletions = count("deletions");
  out.apart = ExtractCost{std::chrono::milliseconds(count("cpu_ms")), count("memory_peak")};
  out.diff = rest;
  return out;
}

Status answer_question(const std::string& asked) {
  std::string_view rest = asked;
  const auto head_text = next(rest);
  if (!head_text) return Error{Errc::kInvalid, "extract: nothing is asked"};
  PROCTOR_TRY(const Json head, parse_json(*head_text, {kHeadBytes, 4}));
  PROCTOR_CHECK_OK(apart::limit_self(std::chrono::seconds(head.at("cpu_s").get<std::uint64_t>()),
                                     head.at("memory").get<std::uint64_t>()));
  Extraction what{};
  what.snapshot.tree_dir = head.at("tree_dir").get<std::string>();
  what.dir = head.at("dir").get<std::string>();
  what.setup = head.at("setup").get<std::string>();
  what.bytes_max = head.at("bytes_max").get<std::size_t>();
  what.kept = head.at("kept").get<std::vector<std::string>>();
  const auto kind = parse_workspace_kind(head.at("kind").get<std::string>());
  if (!kind) return Error{Errc::kInvalid, "extract: no such kind"};
  what.kind = *kind;
  PROCTOR_TRY(what.content, ObjectId::from_hex(head.at("content").get<std::string>()));
  PROCTOR_TRY(const CopiedFiles copied, copied_in(rest));
  if (head.at("copied").get<bool>()) what.copied = &copied;
  TreeCache folders;
  const Result<Patch> patch = extract_here(what, folders);
  if (!patch.ok() && patch.error().detail.find("ut of memory") != std::string::npos)
    throw std::bad_alloc();  // libgit2's word for it
  return write_file(head.at("answer").get<std::string>(), answer_of(patch), Durability::kLazy);
}

}  // namespace

Result<Patch> extract_here(const Extraction& what, TreeCache& folders) {
  // The lower layer's objects: the agent's own are never read.
  PROCTOR_TRY(ObjectDb db,
              ObjectDb::open({snapshot_git_layer(what.snapshot) / ".git" / "objects"}));
  IgnoreRules ignore(what.snapshot, what.kept);
  std::vector<std::string> left_out;
  std::uint64_t left_out_count = 0;
  bool beyond = false;
  ScanInput scan;
  scan.dir = what.dir;
  scan.kind = what.kind;
  scan.tree = what.content;
  scan.setup = what.setup;
  scan.copied = what.copied;
  scan.folders = &folders;
  scan.beyond = &beyond;
  scan.content_max = std::max<std::uint64_t>(what.bytes_max, kContentBytes);
  scan.wanted = [&](const std::string& path, bool folder) -> Result<bool> {
    PROCTOR_TRY(const bool ignored, ignore.ignored(path, folder));
    if (ignored && left_out.size() < Patch::kLeftOutListed)
      left_out.push_back(folder ? path + '/' : path);
    if (ignored) ++left_out_count;
    return !ignored;
  };
  auto changes = scan_changes(db, scan);
  // Our own want of descriptors or memory says nothing about the tree.
  if (!changes.ok() && changes.error().code == Errc::kExhausted && !beyond)
    return Error{Errc::kUnavailable, changes.error().detail};
  if (!changes.ok()) return std::move(changes).error();
  PROCTOR_TRY(Patch patch, make_patch(db, *changes, what.bytes_max));
  std::ranges::sort(left_out);
  patch.left_out = std::move(left_out);
  patch.left_out_count = left_out_count;
  return patch;
}

Result<Patch> extract_apart(const Extraction& what, const Extractor& program,
                            const fs::path& scratch) {
  // Likewise our want of room and of descriptors: what the tree takes, the process says.
  const auto of_host = [](Error e) {
    return Error{Errc::kUnavailable, "extract: " + std::move(e.detail)};
  };
  Result<TempDir> made = TempDir::create("extract", scratch);
  if (!made.ok()) return of_host(std::move(made).error());
  const TempDir dir = std::move(made).value();
  const fs::path answer = dir.path() / "answer";
  CommandSpec spec;
  spec.argv = {program.path.string(), "extract"};
  spec.stdin_bytes = question(what, program, answer);
  spec.timeout = kPatience;
  Result<CommandOutcome> ran = run_command(spec);
  if (!ran.ok()) return of_host(std::move(ran).error());
  const CommandOutcome& outcome = *ran;
  if (outcome.signal == SIGXCPU)
    return Error{Errc::kExhausted, "workspace: a patch takes more than " +
                                       std::to_string(program.cpu.count()) + " s of CPU time"};
  if (outcome.exit_code == apart::kNoMemory)
    return Error{Errc::kExhausted, "workspace: a patch takes more than " +
                                       std::to_string(program.memory >> 20) + " MiB of memory"};
  if (!outcome.success()) return Error{Errc::kUnavailable, "extract: " + outcome.describe()};
  Result<std::string> bytes = read_file(answer, what.bytes_max + kNamesBytes + kHeadBytes);
  if (!bytes.ok()) return of_host(std::move(bytes).error());
  return patch_in(*bytes);
}

int extract_as_asked() {
  try {
    const Status done = answer_question(apart::begin(kAskedBytes));
    if (done.ok()) return apart::kDone;
    std::fprintf(stderr, "%s\n", done.error().detail.c_str());
    return apart::kNoUse;
  } catch (const std::bad_alloc&) {
    return apart::kNoMemory;
  }
}

}  // namespace proctor
