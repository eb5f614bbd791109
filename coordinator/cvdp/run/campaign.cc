#include "coordinator/cvdp/run/campaign.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "common/base/apply.h"
#include "common/base/digest.h"
#include "common/base/git_program.h"
#include "common/base/json_fields.h"
#include "common/base/parse.h"
#include "common/base/subprocess.h"
#include "common/base/text.h"
#include "common/contract/campaign_parser.h"
#include "common/images/image_store.h"
#include "coordinator/cli/image_engine.h"
#include "coordinator/cvdp/dataset/prepare.h"
#include "coordinator/shell/state_folder.h"

namespace proctor::cli {
namespace {
constexpr const char* kLabel = "proctor.build";
constexpr const char* kBuilt = "proctor-cvdp-build:";

// Lengths before bytes: no two contexts have one text.
std::string digest_of(const cvdp::BuildContext& context, const std::string& bases, bool network) {
  std::string all = bases + "\n" + context.dockerfile + (network ? "\nnetwork\n" : "\n");
  for (const auto& [path, bytes] : context.files)
    all += fmt::format("{}:{}{}:{}", path.size(), path, bytes.size(), bytes);
  return sha256(all).hex();
}

// What could be named instead, the store's and the engine's; a few, since it ends a message.
std::string others(const ImageStore& store) {
  std::set<std::string> names;
  if (const auto stored = store.list(); stored.ok())
    for (const StoredImage& image : *stored) names.insert(image.names.begin(), image.names.end());
  if (const auto there = engine_images(); there.ok())
    for (const EngineImage& image : *there) names.insert(image.names.begin(), image.names.end());
  // Our own builds are of one record's Dockerfile each: nobody asks for them by name.
  std::erase_if(names, [](const std::string& name) { return name.starts_with(kBuilt); });
  if (names.empty()) return "no image is there at all";
  constexpr std::size_t kMost = 8;
  std::vector<std::string> told;
  for (const std::string& name : names)
    if (told.size() < kMost) told.push_back(printable(name));
  const std::string out = fmt::format("there are: {}", fmt::join(told, ", "));
  return names.size() <= kMost ? out : fmt::format("{} and {} more", out, names.size() - kMost);
}
}  // namespace

Result<std::string> HostImages::id_of(const std::string& name) {
  const auto it = known_.find(name);
  return it != known_.end() ? it->second : known_.emplace(name, look_for(name)).first->second;
}

Result<std::string> HostImages::look_for(const std::string& name) const {
  PROCTOR_TRY(const ImageStore store, ImageStore::open(default_image_store()));
  if (const auto stored = store.find(name); stored.ok()) return stored->id;
  const auto engine = engine_image(name);
  if (engine.ok()) return engine->id;
  const bool absent = engine.error().code == Errc::kNotFound;
  return cvdp::invalid(
      "image {} is neither in the store {} nor in the Docker Engine{}; nothing is pulled: proctor "
      "images build or import; {}",
      printable(name), store.dir().string(), absent ? "" : " (" + engine.error().detail + ")",
      others(store));
}

Result<std::string> HostImages::build(const cvdp::BuildContext& context) {
  std::string bases;
  for (const std::string& base : context.bases) {
    const auto there = engine_image(base);
    if (!there.ok())
      return cvdp::invalid("building its image needs {} in a Docker Engine: {}", printable(base),
                           there.error().detail);
    bases += there->id + "\n";
  }
  const std::string digest = digest_of(context, bases, network_);
  const auto it = built_.find(digest);
  return it != built_.end() ? it->second
                            : built_.emplace(digest, make(context, digest)).first->second;
}

Result<std::string> HostImages::make(const cvdp::BuildContext& context,
                                     const std::string& digest) const {
  const std::string name = kBuilt + digest.substr(0, 32);
  if (const auto there = engine_image(name); there.ok()) return there->id;
  PROCTOR_TRY(const TempDir dir, TempDir::create("proctor-cvdp-build"));
  for (const auto& [path, bytes] : context.files) {
    PROCTOR_CHECK_OK(make_dirs((dir.path() / path).parent_path()));
    PROCTOR_CHECK_OK(write_file(dir.path() / path, bytes, Durability::kLazy, kOpenFile));
  }
  constexpr const char* kWeek = "168h";
  drop_old_builds(kLabel, kWeek);
  const auto built = build_labelled(
      {name, dir.path(), context.dockerfile, std::string(kLabel) + "=" + digest, network_});
  if (built.ok()) return built->id;
  if (built.error().code == Errc::kUnavailable && network_) return built.error();
  return cvdp::invalid("its image could not be built{}: {}", network_ ? "" : " without a network",
                       built.error().detail);
}

Status open_contexts(const fs::path& repository) {
  PROCTOR_CHECK_OK(make_dirs(repository.parent_path()));
  CommandSpec init;
  init.argv = {"git", "init", "--quiet", "--bare", repository.string()};
  PROCTOR_CHECK_OK(run_for_output(init));
  return ok_status();
}

Result<std::map<std::uint64_t, std::string>> add_contexts(const fs::path& repository,
                                                          std::string stream) {
  PROCTOR_TRY(const TempDir scratch, TempDir::create("proctor-cvdp"));
  const fs::path marks = scratch.path() / "marks";
  CommandSpec git;
  git.argv = {"git",     "--git-dir=" + repository.string(), "fast-import", "--quiet",
              "--force", "--export-marks=" + marks.string()};
  git.stdin_bytes = std::move(stream);
  git.timeout = std::chrono::minutes(10);
  PROCTOR_CHECK_OK(run_for_output(git));
  PROCTOR_TRY(const std::string text, read_file(marks, std::size_t{64} << 20));
  std::map<std::uint64_t, std::string> ids;
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = take_until(rest, '\n');
    std::uint64_t mark = 0;
    if (take_word(line, ":") && take_number(line, mark) && take_word(line, " ")) ids[mark] = line;
  }
  return ids;
}

namespace {
// The repositories of heavy records: the payload of a commit becomes a tree of the campaign's own
// repository, from where workers fetch it like any other context.  Each commit is fetched once,
// alone where its server gives it.  Source: CVDP 7.
class HeavyRepos {
 public:
  // `base`: CVDP_HEAVY_REPOS_PATH.  Unless `keep_http`, GitHub is asked over ssh, as upstream does.
  HeavyRepos(fs::path repository, std::string base, bool keep_http)
      : repository_(std::move(repository)), base_(std::move(base)), keep_http_(keep_http) {}
  // The tree's id.  kInvalid: no such folder in that commit; else what git says.
  Result<std::string> payload(const cvdp::HeavySource& source) {
    const std::string key = source.repository + "\n" + source.commit;
    if (const auto it = trees_.find(key); it != trees_.end()) return it->second;
    PROCTOR_TRY(std::string from, cvdp::resolve_reference(source.repository, base_, is_there));
    const std::string folder = cvdp::payload_folder(from);
    if (!keep_http_ && !is_there(from)) from = cvdp::github_over_ssh(from);
    PROCTOR_TRY(const TempDir home, TempDir::create("proctor-cvdp"));
    PROCTOR_TRY(const GitProgram git, GitProgram::create(home.path()));
    PROCTOR_TRY(const GitSource place, parse_source(from, fs::current_path()));
    PROCTOR_CHECK_OK(fetch(git, place, source.commit));
    const auto tree = git.run(git.command(
        fs::absolute(repository_), {"rev-parse", "--verify", "--quiet",
                                    source.commit + (folder.empty() ? "^{tree}" : ":" + folder)}));
    std::string id = tree.ok() ? *tree : "";
    while (id.ends_with('\n')) id.pop_back();
    if (id.empty())
      return cvdp::invalid("commit {} of {} has no folder {}", source.commit,
                           printable(place.shown), folder);
    trees_[key] = id;
    return id;
  }

  // kInvalid: git would refuse the diff on that tree.
  Status applies(const std::string& tree, const std::string& diff) const {
    if (diff.empty()) return ok_status();
    PROCTOR_TRY(const TempDir scratch, TempDir::create("proctor-cvdp"));
    const fs::path git = scratch.path() / "git", index = scratch.path() / "index",
                   objects = fs::absolute(repository_) / "objects";
    PROCTOR_CHECK_OK(prepare_apply(git, objects, tree, index));
    const auto applied =
        apply_diff(git, {{}, nullptr, index}, {objects, {}, tree, scratch.path()}, diff);
    if (!applied.ok()) return in_context("its patch does not apply to the commit", applied.error());
    return ok_status();
  }

 private:
  // Another record's repository may have brought the commit: this one must have it too.
  Status fetch(const GitProgram& git, const GitSource& from, const std::string& commit) {
    const std::string refs = "refs/heavy/" + sha256(from.location).short_hex() + "/";
    const auto fetched = [&](std::vector<std::string> args) {
      args.insert(args.begin(), {"fetch", "--quiet", "--no-tags"});
      return git.run(git.command(fs::absolute(repository_), std::move(args), &from));
    };
    const std::string remote = GitProgram::kRemote;
    if (fetched({"--depth", "1", remote, "+" + commit + ":" + refs + commit}).ok())
      return ok_status();
    // A bundle has its refs alone.
    if (const auto all = fetched({remote, "+refs/*:" + refs + "*"}); !all.ok())
      return in_context(printable(from.shown), all.error());
    const auto holds = git.run(git.command(
        fs::absolute(repository_), {"for-each-ref", "--count=1", "--contains", commit, refs}));
    if (!holds.ok() || holds->empty())
      return cvdp::invalid("{} has no commit {}", printable(from.shown), commit);
    return ok_status();
  }

  fs::path repository_;
  std::string base_;
  bool keep_http_;
  std::map<std::string, std::string> trees_;  // reference and commit -> tree
};

// The import of a dataset.

constexpr const char* kHead =
    "# Made by `proctor cvdp import`; docs/file-formats.md says what else can stand here.\n"
    "# noop has to fail and reference to succeed on every task: then the tasks are sound.\n";

std::string campaign_name(const fs::path& folder) {
  std::string out = folder.filename().string();
  for (char& c : out)
    if (!is_digit(c) && (c < 'a' || 'z' < c)) c = '-';
  out.erase(0, out.find_first_not_of('-'));
  return out.empty() ? "cvdp" : out;
}

class ImportWork {
 public:
  explicit ImportWork(const ImportOptions& options)
      : options_(options),
        folder_(options.campaign),
        contexts_(folder_ / "repos" / "cvdp.git"),
        heavy_(contexts_, variable("CVDP_HEAVY_REPOS_PATH"), std::getenv("CLONE_HTTP") != nullptr),
        images_(options.settings.network),
        settings_(options.settings) {
    settings_.image_id = [this](const std::string& name) { return images_.id_of(name); };
    settings_.build = [this](const cvdp::BuildContext& context) { return images_.build(context); };
  }

  // Makes the campaign's folder, once.
  Status open() {
    if (std::exchange(open_, true)) return ok_status();
    std::error_code ec;
    if (fs::exists(folder_ / "registration.json", ec))
      return Error{Errc::kConflict, options_.campaign + " is frozen: its tasks cannot change"};
    PROCTOR_CHECK_OK(make_dirs(folder_ / "contracts"));
    PROCTOR_CHECK_OK(open_contexts(contexts_));
    const fs::path campaign = folder_ / "campaign.yaml";
    if (fs::exists(campaign, ec)) return ok_status();
    const std::string name = campaign_name(fs::absolute(folder_).lexically_normal());
    return write_file(campaign, kHead + cvdp_campaign_text(name, options_), Durability::kSync,
                      kOpenFile);
  }

  Status add(cvdp::Record record) {
    PROCTOR_CHECK_OK(open());
    const std::string none(40, '0');
    const auto possible = cvdp::make_contract(record, kRepository, none, settings_);
    const std::string id = cvdp::contract_id(record);
    if (!possible.ok()) return leave_out(record, possible.error());
    const Result<cvdp::CommitExtras> extras = extras_of(record);
    if (!extras.ok()) return leave_out(record, extras.error());
    Result<std::string> stream = cvdp::commit_stream(record, batch_.size() + 1, *extras);
    if (!stream.ok()) return leave_out(record, stream.error());
    if (!ids_.emplace(id, record.id.text).second && ids_[id] != record.id.text)
      return leave_out(
          record,
          cvdp::invalid("its name differs from \"{}\" in upper and lower case only", ids_[id]));
    stream_ += *stream;
    batch_.push_back(std::move(record));
    constexpr std::size_t kBatchBytes = std::size_t{32} << 20;
    return stream_.size() < kBatchBytes ? ok_status() : flush();
  }

  Result<Imported> finish(const cvdp::DatasetSummary& summary) {
    PROCTOR_CHECK_OK(open());
    PROCTOR_CHECK_OK(flush());
    out_.errors = summary.errors;
    return std::move(out_);
  }

 private:
  static constexpr const char* kRepository = "../repos/cvdp.git";

  static std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  }

  Result<cvdp::CommitExtras> extras_of(const cvdp::Record& record) {
    cvdp::CommitExtras out;
    out.golden = options_.include_golden;
    out.harness = options_.include_harness;
    PROCTOR_TRY(const auto source,
                cvdp::heavy_source(record, settings_.repo_url, settings_.commit_hash));
    if (!source) return out;
    PROCTOR_TRY(out.tree, heavy_.payload(*source));
    PROCTOR_TRY(const std::string diff, cvdp::heavy_reference(record));
    PROCTOR_CHECK_OK(heavy_.applies(out.tree, diff));  // one that does not would stop the others
    out.harness = false;  // upstream shows it to agents of other records alone
    return out;
  }

  Status leave_out(const cvdp::Record& record, const Error& why) {
    out_.left_out.push_back({record.id.text, record.category, record.difficulty, why.detail,
                             why.code == cvdp::kBeyondSubset});
    say(options_.file, record, "left out: " + why.detail);
    return ok_status();
  }

  Status flush() {
    if (batch_.empty()) return ok_status();
    PROCTOR_TRY(const auto ids, add_contexts(contexts_, std::move(stream_)));
    stream_.clear();
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      const auto it = ids.find(i + 1);
      if (it == ids.end())
        return Error{Errc::kCorrupt, "git fast-import made no commit of " + batch_[i].id.text};
      PROCTOR_TRY(const auto files,
                  cvdp::make_contract(batch_[i], kRepository, it->second, settings_));
      PROCTOR_CHECK_OK(remove_tree(folder_ / "contracts" / cvdp::contract_id(batch_[i])));
      PROCTOR_CHECK_OK(write_contract(files, folder_));
      ++out_.written;
    }
    batch_.clear();
    return ok_status();
  }

  const ImportOptions& options_;
  fs::path folder_, contexts_;
  HeavyRepos heavy_;
  HostImages images_;
  cvdp::ImportSettings settings_;
  std::string stream_;
  std::vector<cvdp::Record> batch_;
  std::map<std::string, std::string> ids_;  // contract id -> problem id
  Imported out_;
  bool open_ = false;
};
}  // namespace

Status write_contract(const std::vector<cvdp::ContractFile>& files, const fs::path& campaign) {
  for (const cvdp::ContractFile& f : files) {
    const fs::path path = campaign / "contracts" / f.path;
    PROCTOR_CHECK_OK(make_dirs(path.parent_path()));
    PROCTOR_CHECK_OK(write_file(path, f.bytes, Durability::kLazy, f.mode));
  }
  return ok_status();
}

bool needs_compose(const Imported::LeftOut& left) {
  const std::string_view words = left.why;
  return left.needs_compose.value_or(words.find(cvdp::kNeedsCompose) != words.npos);
}

std::string cvdp_campaign_text(const std::string& name, const ImportOptions& options) {
  return fmt::format(
      "name: {}\nmethods: {}\nreplicates: {}\nbudget: {{global: \"{}.00\", run: \"{}\"}}\n"
      "strata: [category, difficulty, dataset_kind]\n",
      name, options.methods, options.replicates, options.global_usd, options.run_usd);
}

Status take_prices(const fs::path& table, const fs::path& campaign) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  PROCTOR_TRY(const std::string prices, read_file(table, kMostBytes));
  PROCTOR_CHECK_OK(make_dirs(campaign));
  return write_file(campaign / kCostModelFile, prices, Durability::kSync, kOpenFile);
}

Result<Imported> import_problems(const ImportOptions& options) {
  ImportWork work(options);
  PROCTOR_TRY(const cvdp::DatasetSummary summary,
              read_selected(options.file, options.selection,
                            [&](cvdp::Record record) { return work.add(std::move(record)); }));
  return work.finish(summary);
}

// The parts of a prefix, in PREFIX/cvdp.json.

namespace {
constexpr const char* kMarker = "cvdp.json";
constexpr std::size_t kMarkerBytes = std::size_t{64} << 20;
constexpr const char* kFirst = "campaign";

// A marker from before a prefix could grow: samples and selection are in the question.
void move_into_part(Json& marker) {
  Json& question = marker.at("question");
  Json part = {{"campaign", kFirst}, {"from", 1}, {"prepared", Json::array()}};
  const auto take = [&part](Json& from, const char* name, const char* as) {
    part[as] = from.at(name);
    from.erase(name);
  };
  take(question, "samples", "to");
  take(question, "filter", "filter");
  take(question, "ids", "ids");
  take(marker, "contracts", "contracts");
  take(marker, "left_out", "left_out");
  const auto samples = part["to"].get<std::uint32_t>();
  for (std::uint32_t sample = 1; sample <= samples; ++sample)
    part["prepared"].push_back(samples == 1 ? "" : "sample_" + std::to_string(sample));
  marker["parts"] = Json::array({std::move(part)});
}

bool is_name(const std::string& folder) {
  return is_safe_relative(folder) && folder.find('/') == std::string::npos;
}
}  // namespace

std::string CvdpPart::judging() const {
  return "judging" + campaign.substr(std::min(campaign.size(), std::string(kFirst).size()));
}

Result<CvdpAsked> read_asked(const fs::path& prefix) {
  const fs::path file = prefix / kMarker;
  PROCTOR_TRY(const std::string text, read_file(file, kMarkerBytes));
  PROCTOR_TRY(Json marker, parse_json(text));
  try {
    if (!marker.contains("parts")) move_into_part(marker);
  } catch (const Json::exception& e) {
    return Error{Errc::kCorrupt, file.string() + ": " + e.what()};
  }
  PROCTOR_TRY(CvdpAsked out,
              from_json<CvdpAsked>(marker, file.string(), Errc::kCorrupt, Versions::kAny));
  for (const CvdpPart& part : out.parts)
    if (!is_name(part.campaign))
      return Error{Errc::kCorrupt, file.string() + ": a campaign lies outside"};
  return out;
}

Status write_asked(const fs::path& prefix, const CvdpAsked& asked) {
  constexpr std::size_t kWhyBytes = 2000;
  CvdpAsked written = asked;
  for (CvdpPart& part : written.parts)
    for (Imported::LeftOut& left : part.left_out) left.why = printable(left.why, kWhyBytes);
  return write_file(prefix / kMarker, to_json(written).dump(1) + "\n");
}

Result<CvdpDemand> demand_of(const std::string& file, const std::vector<CvdpPart>& parts,
                             const Selection& selection, std::uint32_t samples) {
  CvdpDemand out;
  out.touched.resize(parts.size());
  std::map<std::uint32_t, std::vector<std::string>> have;  // samples there are -> problems
  const auto add = [&](const cvdp::Record& record) {
    std::uint32_t there = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (!parts[i].selection.holds(record)) continue;
      there = std::max(there, parts[i].to);
      if (parts[i].from <= samples) out.touched[i] = true;
    }
    have[std::min(there, samples)].push_back(record.id.text);
    return ok_status();
  };
  PROCTOR_TRY(const cvdp::DatasetSummary summary,
              read_selected(file, selection, add, Findings::kKnown));
  out.broken = summary.errors;
  for (auto& [there, ids] : have) {
    if (there == samples) continue;
    CvdpPart part;
    const std::size_t number = parts.size() + out.missing.size() + 1;
    if (1 < number) part.campaign = std::string(kFirst) + "-" + std::to_string(number);
    part.from = there + 1;
    part.to = samples;
    if (parts.empty())
      part.selection = selection;
    else
      part.selection.ids = std::move(ids);
    out.missing.push_back(std::move(part));
  }
  return out;
}
}  // namespace proctor::cli
