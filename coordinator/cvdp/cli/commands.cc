#include "coordinator/cvdp/cli/commands.h"

#include <algorithm>
#include <map>
#include <set>

#include "common/base/text.h"
#include "coordinator/cvdp/dataset/dataset.h"
#include "coordinator/cvdp/dataset/prepare.h"
#include "coordinator/cvdp/dataset/transform.h"
#include "coordinator/cvdp/pycompat/python_text.h"
#include "coordinator/cvdp/pycompat/yaml.h"
#include "coordinator/cvdp/run/campaign.h"

namespace proctor::cli {
// proctor cvdp check FILE: every record of a dataset judged, nothing run.

namespace {
void print_cells(const cvdp::DatasetSummary& s) {
  for (const auto& [category, by_difficulty] : s.cells) {
    std::printf("  %-10s", category.c_str());
    for (const char* difficulty : {"easy", "medium", "hard"})
      if (const auto it = by_difficulty.find(difficulty); it != by_difficulty.end())
        std::printf("  %s %llu", difficulty, static_cast<unsigned long long>(it->second));
    std::puts("");
  }
}

int check(const std::string& file) {
  const Result<cvdp::DatasetSummary> s =
      read_dataset(file, [](const cvdp::Record&) { return ok_status(); });
  if (!s.ok()) return complain(s.error());
  const auto n = [](std::uint64_t x) { return static_cast<unsigned long long>(x); };
  std::printf(
      "%s: %llu problems: %llu copilot, %llu agentic (%llu heavy); %llu comprehension, "
      "%llu redacted\n",
      file.c_str(), n(s->records), n(s->records - s->agentic), n(s->agentic), n(s->heavy),
      n(s->comprehension), n(s->redacted));
  print_cells(*s);
  std::printf("%llu errors, %llu warnings\n", n(s->errors), n(s->warnings));
  return s->errors == 0 ? kOk : kBadInput;
}
}  // namespace

void add_cvdp_check(Command cvdp, int& exit_code) {
  const Command command = cvdp.add_subcommand(
      "check", "judge every record of a dataset, run nothing",
      "Example:\n  proctor cvdp check problems.jsonl\n"
      "Exit code 2 when there is any error. A warning says what upstream would do with the "
      "record.");
  auto file = std::make_shared<std::string>();
  command.add_option("FILE", *file, "the dataset, one JSON record a line").required();
  command.callback([=, &exit_code] { exit_code = check(*file); });
}

// proctor cvdp import FILE --into CAMPAIGN: problems as contracts.
void add_cvdp_import(Command cvdp, int& exit_code) {
  const Command command = cvdp.add_subcommand(
      "import", "problems as contracts of a campaign",
      "Example:\n  proctor cvdp import problems.jsonl --into campaign --filter category=cid003\n"
      "A folder without a campaign.yaml gets one. Each service is a check in a container of its "
      "image, which must be\nin the image store or the Docker Engine. What no check can be made of "
      "is left out and named: answers in words,\nlicensed tools, services that depend on each "
      "other.");
  auto o = std::make_shared<ImportOptions>();
  command.add_option("FILE", o->file, "the dataset").required();
  command.add_option("--into", o->campaign, "the campaign's folder").required();
  command.add_option("--image", o->settings.image,
                     "name@sha256:... for every service, instead of its compose file's");
  command.add_flag("!--no-containers", o->settings.containers,
                   "run the services' commands in the contract's sandbox, not in their images");
  command.add_flag("-e,--external-network", o->settings.network,
                   "give harnesses and builds a network");
  command
      .add_option("--oss-sim-image,--image-sim", o->settings.names.oss_sim, "for __OSS_SIM_IMAGE__")
      .envname("OSS_SIM_IMAGE");
  add_selection(command, o->selection);
  command.callback([=, &exit_code] {
    const Result<Imported> done = import_problems(*o);
    if (!done.ok()) {
      exit_code = complain(done.error());
      return;
    }
    const bool nothing = done->written == 0 && !done->left_out.empty();
    exit_code = done->errors == 0 && !nothing ? kOk : kBadInput;
    std::printf("%zu contracts in %s/contracts, %zu problems left out\n", done->written,
                o->campaign.c_str(), done->left_out.size());
    if (nothing)
      std::fprintf(stderr,
                   "proctor cvdp import: no problem was left, so %s has no task; each line above "
                   "says why, and proctor cvdp import --help what can be changed\n",
                   o->campaign.c_str());
  });
}

// proctor cvdp prepare FILE --prefix DIR: upstream's folders and files, nothing run.
Status write_below(const fs::path& root, const std::string& relative, std::string_view bytes) {
  fs::path at = root;
  const fs::path path(relative);
  for (const fs::path& part : path.parent_path()) {
    at /= part;
    std::error_code ec;
    const auto status = fs::symlink_status(at, ec);
    if (fs::is_symlink(status)) return Error{Errc::kInvalid, at.string() + ": is a symbolic link"};
    if (!fs::exists(status)) PROCTOR_CHECK_OK(make_dirs(at));
  }
  return write_file(root / path, bytes, Durability::kLazy, kOpenFile);  // containers read it
}

namespace {
class PrepareWork {
 public:
  explicit PrepareWork(const PrepareOptions& options) : options_(options) {
    settings_.mode = options.no_patch ? cvdp::PrepareMode::kNoPatch : cvdp::PrepareMode::kGolden;
    settings_.names = options.names;
    settings_.shared_network =
        !options.network.empty() ? options.network : cvdp::upstream_network_name(options.file);
  }

  Status record(const cvdp::Record& record) {
    const Result<cvdp::Prepared> prepared = cvdp::prepare(record, settings_);
    Status done = prepared.ok() ? write(*prepared) : Status(prepared.error());
    if (!done.ok()) {
      ++out_.refused;
      say(record, done.error().detail);
    } else {
      ++out_.prepared;
      for (const std::string& w : prepared->warnings) say(record, "warning: " + printable(w, 500));
    }
    begun_.insert(cvdp::write_json(cvdp::Value(record.id.text)));
    responses_ += cvdp::prompt_response_line(record, done.ok() ? &*prepared : nullptr) + "\n";
    return ok_status();
  }

  Result<PreparedCount> finish(const cvdp::DatasetSummary& summary) {
    PROCTOR_CHECK_OK(make_dirs(options_.prefix));
    const fs::path file = fs::path(options_.prefix) / "prompt_response.jsonl";
    if (options_.keep_responses) PROCTOR_CHECK_OK(keep_others(file));
    PROCTOR_CHECK_OK(write_file(file, responses_));
    out_.errors = summary.errors;
    return out_;
  }

 private:
  // Each line begins with its problem's id.
  Status keep_others(const fs::path& file) {
    constexpr std::size_t kMostBytes = std::size_t{4} << 30;
    const Result<std::string> there = read_file(file, kMostBytes);
    if (!there.ok()) return there.error().code == Errc::kNotFound ? ok_status() : there.error();
    std::string kept;
    for (std::size_t at = 0; at < there->size();) {
      const std::size_t end = std::min(there->find('\n', at), there->size() - 1) + 1;
      const std::string line = there->substr(at, end - at);
      const std::size_t id_end = line.find(": ");
      if (line.starts_with("{") && id_end != std::string::npos &&
          !begun_.contains(line.substr(1, id_end - 1)))
        kept += line;
      at = end;
    }
    responses_.insert(0, kept);
    return ok_status();
  }

  void say(const cvdp::Record& record, const std::string& what) const {
    if (options_.quiet) return;
    std::fprintf(stderr, "%s:%llu: %s: %s\n", options_.file.c_str(),
                 static_cast<unsigned long long>(record.line), record.id.text.c_str(),
                 what.c_str());
  }

  Status write(const cvdp::Prepared& p) const {
    const fs::path root = fs::path(options_.prefix) / p.folder;
    // Files of an earlier run would decide the verdict of this one.
    PROCTOR_CHECK_OK(remove_tree(root));
    for (const std::string& folder : p.folders) PROCTOR_CHECK_OK(make_dirs(root / folder));
    for (const cvdp::PreparedFile& f : p.files)
      PROCTOR_CHECK_OK(write_below(root, f.path, f.bytes));
    return ok_status();
  }

  const PrepareOptions& options_;
  cvdp::PrepareSettings settings_;
  std::string responses_;
  std::set<std::string> begun_;  // ids, as JSON has them
  PreparedCount out_;
};
}  // namespace

Result<PreparedCount> prepare_problems(const PrepareOptions& options) {
  PROCTOR_TRY(const LastLines last, last_lines(options.file, options.selection));
  PrepareWork work(options);
  const auto add = [&](const cvdp::Record& record) {
    return last.holds(record) && options.selection.holds(record) ? work.record(record)
                                                                 : ok_status();
  };
  PROCTOR_TRY(const cvdp::DatasetSummary summary,
              read_dataset(options.file, add, options.quiet ? Findings::kKnown : Findings::kTell));
  return work.finish(summary);
}

void add_cvdp_prepare(Command cvdp, int& exit_code) {
  const Command command = cvdp.add_subcommand(
      "prepare", "lay out the folders and files of each problem as upstream does, run nothing",
      "Example:\n  proctor cvdp prepare problems.jsonl --prefix work --no-patch\n"
      "A record that would write outside its folder or whose compose file asks for the host is "
      "refused; "
      "the\nothers are prepared and the exit code is 2.");
  auto o = std::make_shared<PrepareOptions>();
  command.add_option("FILE", o->file, "the dataset").required();
  command.add_option("-p,--prefix", o->prefix, "output folder (work)");
  command.add_flag("-d,--no-patch", o->no_patch, "without the reference solutions");
  command.add_option("--network-name", o->network, "the shared network (upstream's name)");
  command.add_option("--oss-sim-image", o->names.oss_sim, "for __OSS_SIM_IMAGE__")
      .envname("OSS_SIM_IMAGE");
  command.add_option("--oss-pnr-image", o->names.oss_pnr, "for __OSS_PNR_IMAGE__")
      .envname("OSS_PNR_IMAGE");
  command.add_option("--verif-eda-image", o->names.verif_eda, "for __VERIF_EDA_IMAGE__")
      .envname("VERIF_EDA_IMAGE");
  command.add_option("--license-network", o->names.license_network, "for __LICENSE_NETWORK__")
      .envname("LICENSE_NETWORK");
  add_selection(command, o->selection);
  command.callback([=, &exit_code] {
    const Result<PreparedCount> done = prepare_problems(*o);
    if (!done.ok()) {
      exit_code = complain(done.error());
      return;
    }
    std::printf("%llu problems prepared in %s, %llu refused\n",
                static_cast<unsigned long long>(done->prepared), o->prefix.c_str(),
                static_cast<unsigned long long>(done->refused));
    exit_code = done->refused == 0 && done->errors == 0 ? kOk : kBadInput;
  });
}

// proctor cvdp transform: a dataset of one shape as one of the other.

namespace {
class Transformation {
 public:
  Transformation(const TransformOptions& options, OutputFile& out)
      : options_(options),
        to_(options.to == "agentic" ? cvdp::Shape::kAgentic : cvdp::Shape::kCopilot),
        out_(out),
        lines_(std::size_t{256} << 20) {}

  Status feed(std::string_view piece) {
    lines_.feed(piece, [this](const cvdp::LineFeed::Line& l) { take(l); });
    return flush(std::size_t{1} << 20);
  }
  Status finish() {
    lines_.finish([this](const cvdp::LineFeed::Line& l) { take(l); });
    return flush(0);
  }
  std::uint64_t errors() const { return errors_; }
  std::string summary() const {
    return std::to_string(records_) + " records, " + std::to_string(changed_) + " transformed, " +
           std::to_string(errors_) + " lines left out";
  }

 private:
  void say(std::uint64_t line, const std::string& text) const {
    std::fprintf(stderr, "%s:%llu: %s\n", options_.file.c_str(),
                 static_cast<unsigned long long>(line), printable(text, 1000).c_str());
  }
  void take(const cvdp::LineFeed::Line& line) {
    const Status done = one(line);
    if (done.ok()) return;
    ++errors_;
    say(line.number, "error: " + done.error().detail + ": the line is left out");
  }
  Status one(const cvdp::LineFeed::Line& line) {
    if (line.too_long) return Error{Errc::kInvalid, "longer than 256 MiB"};
    PROCTOR_TRY(cvdp::Value value, cvdp::read_json(line.text));
    if (options_.report_losses) {
      PROCTOR_TRY(const std::vector<cvdp::Loss> losses, cvdp::losses_of(value, to_));
      for (const cvdp::Loss& l : losses)
        say(line.number, "loss: " + (l.field.empty() ? "" : l.field + ": ") + l.text);
    }
    PROCTOR_TRY(const cvdp::Transformed made, cvdp::transform(std::move(value), to_));
    if (!options_.report_losses)
      for (const std::string& w : made.warnings) say(line.number, "warning: " + w);
    ++records_;
    changed_ += made.changed ? 1U : 0U;
    cvdp::write_json(ready_, made.value);
    ready_ += '\n';
    return ok_status();
  }
  Status flush(std::size_t from) {
    if (ready_.size() <= from) return ok_status();
    PROCTOR_CHECK_OK(out_.write(ready_));
    ready_.clear();
    return ok_status();
  }

  const TransformOptions& options_;
  cvdp::Shape to_;
  OutputFile& out_;
  cvdp::LineFeed lines_;
  std::string ready_;
  std::uint64_t records_ = 0;
  std::uint64_t changed_ = 0;
  std::uint64_t errors_ = 0;
};
}  // namespace

Result<int> run_transform(const TransformOptions& options) {
  fs::path target = options.out;
  std::error_code ec;
  if (!options.out.empty() && fs::is_directory(target, ec))
    target /= cvdp::transformed_name(
        fs::path(options.file).filename().string(),
        options.to == "agentic" ? cvdp::Shape::kAgentic : cvdp::Shape::kCopilot);
  PROCTOR_TRY(OutputFile out, OutputFile::open(target));
  Transformation work(options, out);
  PROCTOR_CHECK_OK(
      read_pieces(options.file, [&](std::string_view piece) { return work.feed(piece); }));
  PROCTOR_CHECK_OK(work.finish());
  PROCTOR_CHECK_OK(out.close());
  std::fprintf(stderr, "%s\n", work.summary().c_str());
  return work.errors() == 0 ? kOk : kBadInput;
}

void add_cvdp_transform(Command cvdp, int& exit_code) {
  const Command command = cvdp.add_subcommand(
      "transform",
      "a dataset of one shape as one of the other, as upstream's "
      "--force-agentic and --force-copilot",
      "Example:\n  proctor cvdp transform --to agentic problems.jsonl -o agentic.jsonl\n"
      "Without -o to standard output; into a folder under the name upstream gives it. A line that "
      "is "
      "no\nrecord is told and left out, and the exit code is 2.");
  auto options = std::make_shared<TransformOptions>();
  command.add_option("--to", options->to, "agentic or copilot")
      .required()
      .one_of({"agentic", "copilot"});
  command.add_option("FILE", options->file, "the dataset").required();
  command.add_option("-o,--output", options->out, "file or folder to write");
  command.add_flag("--report-losses", options->report_losses,
                   "list what a round trip would not bring back");
  command.callback([=, &exit_code] { exit_code = code_of(run_transform(*options)); });
}

// proctor cvdp merge, split, refine and stats: what upstream's tools/ do to dataset files.

namespace {
std::string line_of(const cvdp::Value& value) {
  return cvdp::write_json(value) + "\n";
}
int verdict(const cvdp::DatasetSummary& s) {
  return s.errors == 0 ? kOk : kBadInput;
}

// The first file wins where an id is in several.
Result<int> run_merge(const std::vector<std::string>& files, const std::string& target) {
  PROCTOR_TRY(OutputFile out, OutputFile::open(target));
  std::set<std::string> seen;
  int code = kOk;
  std::size_t written = 0;
  for (const std::string& file : files) {
    PROCTOR_TRY(const cvdp::DatasetSummary s, read_dataset(file, [&](const cvdp::Record& r) {
                  if (!seen.insert(r.id.text).second) return ok_status();
                  ++written;
                  return out.write(line_of(r.value));
                }));
    code = std::max(code, verdict(s));
  }
  PROCTOR_CHECK_OK(out.close());
  std::fprintf(stderr, "%zu records\n", written);
  return code;
}

struct SplitOptions {
  std::string file;
  std::string by;
  std::string out;
  Selection selection;
};

std::string split_key(const std::string& by, const cvdp::Record& r) {
  if (by == "category") return r.category;
  if (by == "difficulty") return r.difficulty;
  return std::string(cvdp::to_string(r.shape));
}

// One file per value; without --by one file of what was selected.
Result<int> run_split(const SplitOptions& o) {
  std::map<std::string, OutputFile> files;
  const fs::path stem = fs::path(o.file).stem();
  const auto file_for = [&](const std::string& key) -> Result<OutputFile*> {
    const auto it = files.find(key);
    if (it != files.end()) return &it->second;
    const fs::path target =
        o.by.empty() ? fs::path(o.out) : fs::path(o.out) / (stem.string() + "." + key + ".jsonl");
    PROCTOR_TRY(OutputFile made, OutputFile::open(target));
    return &files.emplace(key, std::move(made)).first->second;
  };
  if (!o.by.empty()) PROCTOR_CHECK_OK(make_dirs(o.out));
  PROCTOR_TRY(
      const cvdp::DatasetSummary s, read_dataset(o.file, [&](const cvdp::Record& r) -> Status {
        if (!o.selection.holds(r)) return ok_status();
        PROCTOR_TRY(OutputFile* const out, file_for(o.by.empty() ? "" : split_key(o.by, r)));
        return out->write(line_of(r.value));
      }));
  for (auto& [key, file] : files) PROCTOR_CHECK_OK(file.close());
  std::fprintf(stderr, "%zu files\n", files.size());
  return verdict(s);
}

struct Sizes {
  std::uint64_t problems = 0;
  std::uint64_t prompt_words = 0;
  std::uint64_t context_files = 0;
  std::uint64_t context_bytes = 0;
  std::uint64_t solution_files = 0;
  std::uint64_t solution_bytes = 0;
};

void add_files(const cvdp::Object* files, std::uint64_t& count, std::uint64_t& bytes) {
  if (files == nullptr) return;
  for (const cvdp::Member& m : *files) {
    ++count;
    if (const std::string* s = m.value.string()) bytes += s->size();
  }
}

Result<int> run_stats(const std::string& file, bool json) {
  std::map<std::string, Sizes> by_category;
  PROCTOR_TRY(const cvdp::DatasetSummary s, read_dataset(file, [&](const cvdp::Record& r) {
                Sizes& z = by_category[r.category];
                ++z.problems;
                if (const std::string* p = cvdp::prompt_of(r))
                  z.prompt_words += cvdp::split_words(*p).size();
                add_files(cvdp::context_files(r), z.context_files, z.context_bytes);
                add_files(cvdp::solution_files(r), z.solution_files, z.solution_bytes);
                return ok_status();
              }));
  cvdp::Object all;
  if (!json)
    std::printf("%-10s %9s %13s %14s %14s %15s %15s\n", "category", "problems", "prompt words",
                "context files", "context bytes", "solution files", "solution bytes");
  const auto n = [](std::uint64_t x) { return static_cast<unsigned long long>(x); };
  for (const auto& [category, z] : by_category) {
    const std::pair<const char*, std::uint64_t> members[] = {{"problems", z.problems},
                                                             {"prompt_words", z.prompt_words},
                                                             {"context_files", z.context_files},
                                                             {"context_bytes", z.context_bytes},
                                                             {"solution_files", z.solution_files},
                                                             {"solution_bytes", z.solution_bytes}};
    cvdp::Object one;
    for (const auto& [key, value] : members) one.append(key, static_cast<std::int64_t>(value));
    all.append(category, std::move(one));
    if (!json)
      std::printf("%-10s %9llu %13llu %14llu %14llu %15llu %15llu\n", category.c_str(),
                  n(z.problems), n(z.prompt_words), n(z.context_files), n(z.context_bytes),
                  n(z.solution_files), n(z.solution_bytes));
  }
  if (json) std::printf("%s\n", cvdp::write_json(cvdp::Value(std::move(all)), 2).c_str());
  return verdict(s);
}

using Replies = std::map<std::string, cvdp::Value>;

Result<Replies> read_replies(const std::string& file) {
  Replies out;
  std::string wrong;
  cvdp::LineFeed lines(std::size_t{64} << 20);
  const auto take = [&](const cvdp::LineFeed::Line& line) {
    const Result<cvdp::Value> v = cvdp::read_json(line.text);
    const std::string* id = v.ok() ? cvdp::text_at(*v, "id") : nullptr;
    if (id != nullptr && cvdp::text_at(*v, "prompt") != nullptr)
      out[*id] = *v;
    else if (wrong.empty())
      wrong = file + ":" + std::to_string(line.number) + ": {\"id\", \"prompt\", ...} is expected";
  };
  PROCTOR_CHECK_OK(read_pieces(file, [&](std::string_view piece) {
    lines.feed(piece, take);
    return ok_status();
  }));
  lines.finish(take);
  if (!wrong.empty()) return Error{Errc::kInvalid, wrong};
  return out;
}

// A model's new prompts, put where upstream puts them; everything else of a record stays.
Result<int> run_refine(const std::string& file, const std::string& replies_file,
                       const std::string& target) {
  PROCTOR_TRY(const Replies replies, read_replies(replies_file));
  PROCTOR_TRY(OutputFile out, OutputFile::open(target));
  std::size_t refined = 0;
  PROCTOR_TRY(const cvdp::DatasetSummary s, read_dataset(file, [&](cvdp::Record r) {
                const auto it = replies.find(r.id.text);
                if (it != replies.end() && r.shape == cvdp::Shape::kCopilot) {
                  cvdp::Object& top = *r.value.object();
                  const std::string original = *cvdp::prompt_of(r);
                  cvdp::Value& input = *top.find("input");
                  input.object()->set("prompt", *cvdp::text_at(it->second, "prompt"));
                  for (const char* key : {"reasoning", "ambiguity_score", "consistency_score"})
                    if (const cvdp::Value* v = it->second.object()->find(key)) top.set(key, *v);
                  top.set("original_prompt", original);
                  ++refined;
                }
                return out.write(line_of(r.value));
              }));
  PROCTOR_CHECK_OK(out.close());
  std::fprintf(stderr, "%zu prompts refined\n", refined);
  return verdict(s);
}
}  // namespace

void add_cvdp_merge(Command cvdp, int& exit_code) {
  const Command command =
      cvdp.add_subcommand("merge", "several datasets as one; the first file wins by id",
                          "Example:\n  proctor cvdp merge a.jsonl b.jsonl -o all.jsonl");
  auto files = std::make_shared<std::vector<std::string>>();
  auto out = std::make_shared<std::string>();
  command.add_option("FILE", *files, "datasets").required();
  command.add_option("-o,--output", *out, "file to write (standard output)");
  command.callback([=, &exit_code] { exit_code = code_of(run_merge(*files, *out)); });
}

void add_cvdp_split(Command cvdp, int& exit_code) {
  const Command command =
      cvdp.add_subcommand("split", "parts of a dataset as files of their own",
                          "Example:\n  proctor cvdp split all.jsonl --by category -o parts\n"
                          "  proctor cvdp split all.jsonl --filter difficulty=easy -o easy.jsonl");
  auto o = std::make_shared<SplitOptions>();
  command.add_option("FILE", o->file, "the dataset").required();
  command.add_option("--by", o->by, "one file per category, difficulty or kind")
      .one_of({"category", "difficulty", "kind"});
  command.add_option("-o,--output", o->out, "folder (with --by) or file to write").required();
  add_selection(command, o->selection);
  command.callback([=, &exit_code] { exit_code = code_of(run_split(*o)); });
}

void add_cvdp_stats(Command cvdp, int& exit_code) {
  const Command command =
      cvdp.add_subcommand("stats", "how large prompts, contexts and solutions are",
                          "Example:\n  proctor cvdp stats problems.jsonl");
  auto file = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command.add_option("FILE", *file, "the dataset").required();
  command.add_flag("--json", *json, "for scripts");
  command.callback([=, &exit_code] { exit_code = code_of(run_stats(*file, *json)); });
}

void add_cvdp_refine(Command cvdp, int& exit_code) {
  const Command command = cvdp.add_subcommand(
      "refine", "new prompts put into a dataset, the old ones kept",
      "Example:\n  proctor cvdp refine problems.jsonl replies.jsonl -o problems_refined.jsonl\n"
      "replies.jsonl holds {\"id\", \"prompt\"[, \"reasoning\", \"ambiguity_score\", "
      "\"consistency_score\"]} a line.\nAgentic records stay as they are, as upstream.");
  auto file = std::make_shared<std::string>();
  auto replies = std::make_shared<std::string>();
  auto out = std::make_shared<std::string>();
  command.add_option("FILE", *file, "the dataset").required();
  command.add_option("REPLIES", *replies, "what the model answered").required();
  command.add_option("-o,--output", *out, "file to write (standard output)");
  command.callback([=, &exit_code] { exit_code = code_of(run_refine(*file, *replies, *out)); });
}

// proctor cvdp yaml and show: datasets for people's eyes.

namespace {
bool is_yaml(const std::string& file) {
  return file.ends_with(".yaml") || file.ends_with(".yml");
}

Result<int> to_yaml(const std::string& file, OutputFile& out) {
  std::size_t left_out = 0;
  PROCTOR_TRY(const cvdp::DatasetSummary summary,
              read_dataset(file, [&](const cvdp::Record& record) {
                const Result<std::string> text = cvdp::record_yaml(record.value);
                if (text.ok()) return out.write(*text);
                ++left_out;
                std::fprintf(stderr, "%s:%llu: %s: left out: %s\n", file.c_str(),
                             static_cast<unsigned long long>(record.line), record.id.text.c_str(),
                             printable(text.error().detail, 500).c_str());
                return ok_status();
              }));
  return summary.errors == 0 && left_out == 0 ? kOk : kBadInput;
}

Result<int> to_jsonl(const std::string& file, OutputFile& out) {
  PROCTOR_TRY(const std::string text, read_file(file, cvdp::kRecordBytes));
  int code = kOk;
  for (const cvdp::YamlDocument& document : cvdp::split_documents(text)) {
    const auto value = cvdp::read_yaml(document.text, file, cvdp::kRecordBytes);
    if (value.ok()) {
      PROCTOR_CHECK_OK(out.write(cvdp::write_json(*value) + "\n"));
      continue;
    }
    code = kBadInput;
    std::fprintf(stderr, "the document at line %llu is left out: %s\n",
                 static_cast<unsigned long long>(document.line),
                 printable(value.error().detail, 1000).c_str());
  }
  return code;
}

Result<int> run_yaml(const std::string& file, const std::string& target) {
  PROCTOR_TRY(OutputFile out, OutputFile::open(target));
  PROCTOR_TRY(const int code, is_yaml(file) ? to_jsonl(file, out) : to_yaml(file, out));
  PROCTOR_CHECK_OK(out.close());
  return code;
}

struct ShowOptions {
  std::string file;
  Selection selection;
  std::vector<std::string> parts;
};

void print_text(const std::string& title, const std::string& text) {
  std::printf("--- %s\n%s%s", title.c_str(), printable_lines(text, "\n\t").c_str(),
              text.ends_with('\n') || text.empty() ? "" : "\n");
}

void print_files(const std::string& part, const cvdp::Object* files) {
  if (files == nullptr) return;
  for (const cvdp::Member& m : *files)
    print_text(part + " " + printable(m.key), m.value.string() == nullptr
                                                  ? "(" + std::string(m.value.kind()) + ")"
                                                  : *m.value.string());
}

void show(const cvdp::Record& record, const std::vector<std::string>& parts) {
  const auto wanted = [&parts](const char* part) {
    return parts.empty() || std::ranges::find(parts, part) != parts.end();
  };
  std::printf("=== %s: %s, %s, %s\n", record.id.text.c_str(), printable(record.category).c_str(),
              record.difficulty.c_str(), std::string(cvdp::to_string(record.shape)).c_str());
  if (const std::string* system = cvdp::text_at(record.value, "system_message");
      system != nullptr && wanted("system"))
    print_text("system message (never used)", *system);
  if (const std::string* prompt = cvdp::prompt_of(record); prompt != nullptr && wanted("prompt"))
    print_text("prompt", *prompt);
  if (wanted("context")) print_files("context", cvdp::context_files(record));
  if (wanted("solution")) {
    print_files("solution", cvdp::solution_files(record));
    if (!cvdp::reference_of(record).empty())
      print_text("reference", std::string(cvdp::reference_of(record)));
  }
  if (wanted("harness")) print_files("harness", cvdp::harness_files(record));
}

Result<int> run_show(const ShowOptions& o) {
  PROCTOR_TRY(const LastLines last, last_lines(o.file, o.selection));
  PROCTOR_TRY([[maybe_unused]] const cvdp::DatasetSummary summary,
              read_dataset(
                  o.file,
                  [&](const cvdp::Record& record) {
                    if (last.holds(record) && o.selection.holds(record)) show(record, o.parts);
                    return ok_status();
                  },
                  Findings::kKnown));
  return kOk;
}
}  // namespace

void add_cvdp_yaml(Command cvdp, int& exit_code) {
  const Command command = cvdp.add_subcommand(
      "yaml", "a dataset as YAML that people edit, and back",
      "Example:\n  proctor cvdp yaml problems.jsonl -o problems.yaml\n"
      "  proctor cvdp yaml problems.yaml -o problems.jsonl\n"
      "A file that ends in .yaml or .yml becomes JSON lines, any other YAML, one document a "
      "record; "
      "nothing is lost\neither way. A record that YAML would not bring back is named and left out, "
      "and the exit code is 2.");
  auto file = std::make_shared<std::string>();
  auto out = std::make_shared<std::string>();
  command.add_option("FILE", *file, "the dataset").required();
  command.add_option("-o,--output", *out, "file to write (standard output)");
  command.callback([=, &exit_code] { exit_code = code_of(run_yaml(*file, *out)); });
}

void add_cvdp_show(Command cvdp, int& exit_code) {
  const Command command = cvdp.add_subcommand(
      "show", "problems as text: prompt, files, solution, harness",
      "Example:\n  proctor cvdp show problems.jsonl -i cvdp_copilot_lfsr_0001\n"
      "  proctor cvdp show problems.jsonl --filter category=cid003 --part prompt");
  auto o = std::make_shared<ShowOptions>();
  command.add_option("FILE", o->file, "the dataset").required();
  command.add_option("--part", o->parts, "only this; may be given again")
      .one_of({"system", "prompt", "context", "solution", "harness"});
  add_selection(command, o->selection);
  command.callback([=, &exit_code] { exit_code = code_of(run_show(*o)); });
}
}  // namespace proctor::cli
