#include "coordinator/cvdp/cli/commands.h"

#include <algorithm>
#include <map>
#include <set>

#include "common/base/fields.h"
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
Result<int> check(const std::string& file) {
  PROCTOR_TRY(const cvdp::DatasetSummary s,
              read_dataset(file, [](const cvdp::Record&) { return ok_status(); }));
  tell(stdout,
       "{}: {} problems: {} copilot, {} agentic ({} heavy); {} comprehension, {} redacted\n", file,
       s.records, s.records - s.agentic, s.agentic, s.heavy, s.comprehension, s.redacted);
  for (const auto& [category, by_difficulty] : s.cells) {
    tell(stdout, "  {:<10}", category);
    for (const char* difficulty : {"easy", "medium", "hard"})
      if (const auto it = by_difficulty.find(difficulty); it != by_difficulty.end())
        tell(stdout, "  {} {}", difficulty, it->second);
    tell(stdout, "\n");
  }
  tell(stdout, "{} errors, {} warnings\n", s.errors, s.warnings);
  return s.errors == 0 ? kOk : kBadInput;
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
  command.callback([=, &exit_code] { exit_code = code_of(check(*file)); });
}

// proctor cvdp import FILE --into CAMPAIGN: problems as contracts.
namespace {
Result<int> run_import(const ImportOptions& o) {
  PROCTOR_TRY(const Imported done, import_problems(o));
  tell(stdout, "{} contracts in {}/contracts, {} problems left out\n", done.written, o.campaign,
       done.left_out.size());
  const bool nothing = done.written == 0 && !done.left_out.empty();
  if (nothing)
    tell(stderr,
         "proctor cvdp import: no problem was left, so {} has no task; each line above says "
         "why, and proctor cvdp import --help what can be changed\n",
         o.campaign);
  return done.errors == 0 && !nothing ? kOk : kBadInput;
}
}  // namespace

void add_cvdp_import(Command cvdp, int& exit_code) {
  const Command command = cvdp.add_subcommand(
      "import", "problems as contracts of a campaign",
      "Example:\n  proctor cvdp import problems.jsonl --into campaign --filter category=cid003\n"
      "A folder without a campaign.yaml gets one. Each service is a check in a container of its "
      "image, which must be\nin the image store or the Docker Engine. What no check can be made of "
      "is left out and named: answers in words,\nlicensed tools, services that depend on each "
      "other.");
  const auto o = arguments<ImportOptions>(command, exit_code, run_import);
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
  explicit PrepareWork(const PrepareOptions& options)
      : options_(options), settings_(options.settings) {
    if (settings_.shared_network.empty())
      settings_.shared_network = cvdp::upstream_network_name(options.file);
  }

  Status record(const cvdp::Record& record) {
    const Result<cvdp::Prepared> prepared = cvdp::prepare(record, settings_);
    const Status done = prepared.ok() ? write(*prepared) : Status(prepared.error());
    ++(done.ok() ? out_.prepared : out_.refused);
    if (!options_.quiet && !done.ok()) say(options_.file, record, done.error().detail);
    if (!options_.quiet && done.ok())
      for (const std::string& w : prepared->warnings)
        say(options_.file, record, "warning: " + printable(w, 500));
    begun_.insert(cvdp::write_json(record.id.text));
    const auto* const files = done.ok() ? &prepared->files : nullptr;
    responses_ += cvdp::prompt_response_line(record, files, true) + "\n";
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

  Status write(const cvdp::Prepared& p) const {
    const fs::path root = fs::path(options_.prefix) / p.folder;
    // Files of an earlier run would decide the verdict of this one.
    PROCTOR_CHECK_OK(remove_tree(root));
    for (const std::string& folder : p.folders) PROCTOR_CHECK_OK(make_dirs(root / folder));
    for (const cvdp::AnsweredFile& f : p.files) PROCTOR_CHECK_OK(write_below(root, f.path, f.text));
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
  PrepareWork work(options);
  PROCTOR_TRY(const cvdp::DatasetSummary summary,
              read_selected(
                  options.file, options.selection,
                  [&](const cvdp::Record& record) { return work.record(record); },
                  options.quiet ? Findings::kKnown : Findings::kTell));
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
  command.add_flag("-d,--no-patch", o->settings.no_patch, "without the reference solutions");
  command.add_option("--network-name", o->settings.shared_network,
                     "the shared network (upstream's name)");
  command.add_option("--oss-sim-image", o->settings.names.oss_sim, "for __OSS_SIM_IMAGE__")
      .envname("OSS_SIM_IMAGE");
  command.add_option("--oss-pnr-image", o->settings.names.oss_pnr, "for __OSS_PNR_IMAGE__")
      .envname("OSS_PNR_IMAGE");
  command.add_option("--verif-eda-image", o->settings.names.verif_eda, "for __VERIF_EDA_IMAGE__")
      .envname("VERIF_EDA_IMAGE");
  command
      .add_option("--license-network", o->settings.names.license_network, "for __LICENSE_NETWORK__")
      .envname("LICENSE_NETWORK");
  add_selection(command, o->selection);
  command.callback([=, &exit_code] {
    const Result<PreparedCount> done = prepare_problems(*o);
    exit_code = done.ok() && done->refused == 0 && done->errors == 0 ? kOk : kBadInput;
    if (done.ok())
      tell(stdout, "{} problems prepared in {}, {} refused\n", done->prepared, o->prefix,
           done->refused);
    else
      exit_code = complain(done.error());
  });
}

// proctor cvdp transform: a dataset of one shape as one of the other.

namespace {
std::string line_of(const cvdp::Value& value) {
  return cvdp::write_json(value) + "\n";
}
}  // namespace

Result<int> run_transform(const TransformOptions& options) {
  constexpr std::size_t kLineBytes = std::size_t{256} << 20;
  const cvdp::Shape to = options.to == "agentic" ? cvdp::Shape::kAgentic : cvdp::Shape::kCopilot;
  fs::path target = options.out;
  std::error_code ec;
  if (!options.out.empty() && fs::is_directory(target, ec))
    target /= cvdp::transformed_name(fs::path(options.file).filename().string(), to);
  PROCTOR_TRY(OutputFile out, OutputFile::open(target));
  const auto say_of = [&](std::uint64_t line, const std::string& text) {
    tell(stderr, "{}:{}: {}\n", options.file, line, printable(text, 1000));
  };
  const auto made_of = [&](const cvdp::LineFeed::Line& line) -> Result<cvdp::Transformed> {
    if (line.too_long) return cvdp::invalid("longer than 256 MiB");
    PROCTOR_TRY(cvdp::Value value, cvdp::read_json(line.text));
    if (!options.report_losses) return cvdp::transform(std::move(value), to);
    PROCTOR_TRY(const std::vector<cvdp::Loss> losses, cvdp::losses_of(value, to));
    for (const cvdp::Loss& l : losses)
      say_of(line.number, "loss: " + (l.field.empty() ? "" : l.field + ": ") + l.text);
    PROCTOR_TRY(cvdp::Transformed made, cvdp::transform(std::move(value), to));
    made.warnings.clear();  // they are among the losses
    return made;
  };
  std::uint64_t records = 0, changed = 0, errors = 0;
  PROCTOR_CHECK_OK(read_lines(options.file, kLineBytes, [&](const cvdp::LineFeed::Line& line) {
    const Result<cvdp::Transformed> made = made_of(line);
    if (!made.ok()) {
      ++errors;
      say_of(line.number, "error: " + made.error().detail + ": the line is left out");
      return ok_status();
    }
    for (const std::string& w : made->warnings) say_of(line.number, "warning: " + w);
    ++records;
    changed += made->changed ? 1U : 0U;
    return out.write(line_of(made->value));
  }));
  PROCTOR_CHECK_OK(out.close());
  tell(stderr, "{} records, {} transformed, {} lines left out\n", records, changed, errors);
  return errors == 0 ? kOk : kBadInput;
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
  const auto options = arguments<TransformOptions>(command, exit_code, run_transform);
  command.add_option("--to", options->to, "agentic or copilot")
      .required()
      .one_of({"agentic", "copilot"});
  command.add_option("FILE", options->file, "the dataset").required();
  command.add_option("-o,--output", options->out, "file or folder to write");
  command.add_flag("--report-losses", options->report_losses,
                   "list what a round trip would not bring back");
}

// proctor cvdp merge, split, refine and stats: what upstream's tools/ do to dataset files.

namespace {
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
  tell(stderr, "{} records\n", written);
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
  tell(stderr, "{} files\n", files.size());
  return verdict(s);
}

struct Sizes {
  std::uint64_t problems = 0, prompt_words = 0, context_files = 0, context_bytes = 0,
                solution_files = 0, solution_bytes = 0;
};
void fields(auto& v, Is<Sizes> auto& z) {
  v("problems", z.problems);
  v("prompt_words", z.prompt_words);
  v("context_files", z.context_files);
  v("context_bytes", z.context_bytes);
  v("solution_files", z.solution_files);
  v("solution_bytes", z.solution_bytes);
}

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
  constexpr const char* kRow = "{:<10} {:>9} {:>13} {:>14} {:>14} {:>15} {:>15}\n";
  if (!json)
    tell(stdout, kRow, "category", "problems", "prompt words", "context files", "context bytes",
         "solution files", "solution bytes");
  for (const auto& [category, z] : by_category) {
    cvdp::Object one;
    const auto put = [&one](const char* key, std::uint64_t n) {
      one.append(key, static_cast<std::int64_t>(n));
    };
    fields(put, z);
    all.append(category, std::move(one));
    if (!json)
      tell(stdout, kRow, category, z.problems, z.prompt_words, z.context_files, z.context_bytes,
           z.solution_files, z.solution_bytes);
  }
  if (json) tell(stdout, "{}\n", cvdp::write_json(cvdp::Value(std::move(all)), 2));
  return verdict(s);
}

using Replies = std::map<std::string, cvdp::Value>;

Result<Replies> read_replies(const std::string& file) {
  Replies out;
  const auto take = [&](const cvdp::LineFeed::Line& line) -> Status {
    const Result<cvdp::Value> v = cvdp::read_json(line.text);
    const std::string* id = v.ok() ? cvdp::text_at(*v, "id") : nullptr;
    if (id == nullptr || cvdp::text_at(*v, "prompt") == nullptr)
      return cvdp::invalid("{}:{}: {{\"id\", \"prompt\", ...}} is expected", file, line.number);
    out[*id] = *v;
    return ok_status();
  };
  PROCTOR_CHECK_OK(read_lines(file, std::size_t{64} << 20, take));
  return out;
}

// A model's new prompts, put where upstream puts them; everything else of a record stays.
Result<int> run_refine(const std::string& file, const std::string& replies_file,
                       const std::string& target) {
  PROCTOR_TRY(const Replies replies, read_replies(replies_file));
  PROCTOR_TRY(OutputFile out, OutputFile::open(target));
  std::size_t refined = 0;
  PROCTOR_TRY(
      const cvdp::DatasetSummary s, read_dataset(file, [&](cvdp::Record r) {
        const auto it = replies.find(r.id.text);
        if (it != replies.end() && r.shape == cvdp::Shape::kCopilot) {
          cvdp::Object& top = *r.value.object();
          const std::string original = *cvdp::prompt_of(r);
          cvdp::object_at(&top, "input")->set("prompt", *cvdp::text_at(it->second, "prompt"));
          for (const char* key : {"reasoning", "ambiguity_score", "consistency_score"})
            if (const auto* v = cvdp::value_at(it->second.object(), key)) top.set(key, *v);
          top.set("original_prompt", original);
          ++refined;
        }
        return out.write(line_of(r.value));
      }));
  PROCTOR_CHECK_OK(out.close());
  tell(stderr, "{} prompts refined\n", refined);
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
  const auto o = arguments<SplitOptions>(command, exit_code, run_split);
  command.add_option("FILE", o->file, "the dataset").required();
  command.add_option("--by", o->by, "one file per category, difficulty or kind")
      .one_of({"category", "difficulty", "kind"});
  command.add_option("-o,--output", o->out, "folder (with --by) or file to write").required();
  add_selection(command, o->selection);
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
Result<int> to_yaml(const std::string& file, OutputFile& out) {
  std::size_t left_out = 0;
  PROCTOR_TRY(const cvdp::DatasetSummary summary,
              read_dataset(file, [&](const cvdp::Record& record) {
                const Result<std::string> text = cvdp::record_yaml(record.value);
                if (text.ok()) return out.write(*text);
                ++left_out;
                say(file, record, "left out: " + printable(text.error().detail, 500));
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
    tell(stderr, "the document at line {} is left out: {}\n", document.line,
         printable(value.error().detail, 1000));
  }
  return code;
}

Result<int> run_yaml(const std::string& file, const std::string& target) {
  PROCTOR_TRY(OutputFile out, OutputFile::open(target));
  const bool is_yaml = file.ends_with(".yaml") || file.ends_with(".yml");
  PROCTOR_TRY(const int code, is_yaml ? to_jsonl(file, out) : to_yaml(file, out));
  PROCTOR_CHECK_OK(out.close());
  return code;
}

struct ShowOptions {
  std::string file;
  Selection selection;
  std::vector<std::string> parts;
};

void print_text(const std::string& title, const std::string& text) {
  tell(stdout, "--- {}\n{}{}", title, printable_lines(text, "\n\t"),
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
  tell(stdout, "=== {}: {}, {}, {}\n", record.id.text, printable(record.category),
       record.difficulty, cvdp::to_string(record.shape));
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
  const auto print = [&](const cvdp::Record& record) {
    show(record, o.parts);
    return ok_status();
  };
  PROCTOR_CHECK_OK(read_selected(o.file, o.selection, print, Findings::kKnown));
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
  const auto o = arguments<ShowOptions>(command, exit_code, run_show);
  command.add_option("FILE", o->file, "the dataset").required();
  command.add_option("--part", o->parts, "only this; may be given again")
      .one_of({"system", "prompt", "context", "solution", "harness"});
  add_selection(command, o->selection);
}
}  // namespace proctor::cli
