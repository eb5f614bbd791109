// proctor cvdp merge, split, refine and stats: what upstream's tools/ do to dataset files.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <set>

#include "coordinator/cvdp/cli/commands.h"
#include "coordinator/cvdp/cli/output.h"
#include "coordinator/cvdp/pycompat/python_text.h"

namespace proctor::cli {
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

}  // namespace proctor::cli
