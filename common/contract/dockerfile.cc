#include "common/contract/dockerfile.h"

#include <algorithm>

#include "common/base/parse.h"
#include "common/base/result.h"
#include "common/base/text.h"
#include "common/contract/contract_sections.h"

namespace proctor {
namespace {
constexpr std::string_view kBlank = " \t\r";
constexpr std::string_view kScratch = "scratch";
constexpr std::size_t kShown = 100;

// One instruction, with the lines that it goes on over.
struct Instruction {
  std::size_t line = 0;
  std::size_t begin = 0, end = 0;  // its bytes, with its last line's end
  std::string word;                // in capitals
  std::vector<std::string> words;  // what follows
};

std::string capitals(std::string_view word) {
  std::string out(word);
  for (char& c : out)
    if ('a' <= c && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

// "# escape=`" on one of the first lines, before anything else.
char escape_of(std::string_view text) {
  while (!text.empty()) {
    std::string_view line = trimmed(take_until(text, '\n'), kBlank);
    if (!take_word(line, "#")) return '\\';
    if (line.find('=') == line.npos) return '\\';  // a comment ends the directives
    if (lowered(trimmed(take_until(line, '='), kBlank)) == "escape")
      return trimmed(line, kBlank) == "`" ? '`' : '\\';
  }
  return '\\';
}

void add_words(Instruction& to, std::string_view line) {
  while (!(line = trimmed(line, kBlank)).empty()) {
    const std::size_t end = std::min(line.find_first_of(kBlank), line.size());
    if (to.word.empty())
      to.word = capitals(line.substr(0, end));
    else
      to.words.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

std::vector<Instruction> instructions_of(std::string_view text) {
  const char escape = escape_of(text);
  std::vector<Instruction> out;
  bool goes_on = false;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\n')) line.remove_suffix(1);
    line = trimmed(line, kBlank);
    const std::size_t began = at;
    at = end;
    ++number;
    if (line.empty() || line.starts_with('#')) continue;  // also among the lines of one
    if (!goes_on) out.push_back({number, began, end, "", {}});
    goes_on = line.ends_with(escape);
    if (goes_on) line.remove_suffix(1);
    add_words(out.back(), line);
    out.back().end = end;
  }
  return out;
}

// The stages so far, and what an instruction says against the rules.
class Reader {
 public:
  DockerfileFacts read(std::string_view text) {
    for (const Instruction& i : instructions_of(text)) look(i);
    if (stages_.empty()) out_.faults.push_back({1, "no FROM", "an image to begin with"});
    return std::move(out_);
  }
  // Of a FROM: is it the name of an image rather than of a stage?
  bool is_base(const std::string& name) const { return name != kScratch && !stage_of(name); }
  void add_stage(const Instruction& from) {
    stages_.push_back(from.words.size() == 3 ? lowered(from.words[2]) : "");
  }

 private:
  void fault(const Instruction& i, std::string expected) {
    std::string found = i.word;
    for (const std::string& word : i.words) found += " " + word;
    out_.faults.push_back({i.line, printable(found, kShown), std::move(expected)});
  }
  std::optional<std::size_t> stage_of(const std::string& name) const {
    const auto named = std::ranges::find(stages_, lowered(name));
    if (!name.empty() && named != stages_.end())
      return static_cast<std::size_t>(named - stages_.begin());
    return std::nullopt;
  }
  bool is_stage(const std::string& name) const {
    if (const auto number = whole_number<std::size_t>(name)) return *number + 1 < stages_.size();
    return stage_of(name).has_value();
  }
  void look(const Instruction& i) {
    if (i.word == "FROM") return look_at_from(i);
    if (stages_.empty() && i.word != "ARG") return fault(i, "FROM first, or ARG before it");
    if (i.word == "COPY" || i.word == "ADD") return look_at_copy(i);
    if (i.word == "ONBUILD") return fault(i, "no ONBUILD, which acts in other builds than this");
    if (i.word == "RUN" && !i.words.empty() && i.words[0].starts_with("--"))
      fault(i, "RUN without options, which are BuildKit's");
  }
  void look_at_from(const Instruction& i) {
    const bool whole = i.words.size() == 1 || (i.words.size() == 3 && capitals(i.words[1]) == "AS");
    if (!whole) {
      fault(i, "FROM IMAGE or FROM IMAGE AS NAME, without options");
      stages_.emplace_back();
      return;
    }
    const std::string& name = i.words[0];
    if (is_base(name)) {
      if (!is_image(name))
        fault(i,
              "an image by digest ([name@]sha256:<64 hex digits>, see proctor images list), "
              "scratch, or a stage before it");
      else if (std::ranges::find(out_.bases, name) == out_.bases.end())
        out_.bases.push_back(name);
    }
    add_stage(i);
  }
  // What they name is a file of the contract or of a stage; the engine would fetch anything else,
  // whatever network the commands have.
  void look_at_copy(const Instruction& i) {
    constexpr std::string_view kFrom = "--from=";
    for (const std::string& word : i.words) {
      if (word.starts_with(kFrom) && !is_stage(word.substr(kFrom.size())))
        return fault(i, "--from= of a stage before it");
      if (i.word == "ADD" && (word.find("://") != std::string::npos ||
                              word.find('$') != std::string::npos || word.starts_with("git@")))
        return fault(i,
                     "ADD of files beside the Dockerfile; what is fetched, a RUN fetches, with "
                     "the network that the contract gives it");
    }
  }

  DockerfileFacts out_;
  std::vector<std::string> stages_;  // names in small letters, "" without one
};
}  // namespace

DockerfileFacts look_at_dockerfile(std::string_view text) {
  return Reader().read(text);
}

std::string dockerfile_for(std::string_view text, const std::map<std::string, std::string>& ids,
                           const std::string& label) {
  std::string out;
  std::size_t done = 0;
  Reader stages;
  for (const Instruction& i : instructions_of(text)) {
    if (i.word != "FROM") continue;
    const std::string& name = i.words[0];
    const bool base = stages.is_base(name);
    PROCTOR_ASSERT(!base || ids.contains(name));
    out += text.substr(done, i.begin - done);
    out += "FROM " + (base ? ids.at(name) : name);
    if (i.words.size() == 3) out += " AS " + i.words[2];
    out += "\nLABEL " + label + "\n";
    done = i.end;
    stages.add_stage(i);
  }
  out += text.substr(done);
  return out;
}

namespace {

// Dockerfiles that are fine have bases; of others each fault is told where the file is named.
std::vector<std::string> bases_of(const Node& node, const std::string& where,
                                  const ReferencedFile& file, Problems& problems) {
  DockerfileFacts facts = look_at_dockerfile(file.bytes);
  for (const DockerfileFault& fault : facts.faults)
    problems.add(node.at, where,
                 file.path + ", line " + std::to_string(fault.line) + ": " + fault.found,
                 fault.expected);
  return std::move(facts.bases);
}
}  // namespace

std::optional<ImageBuild> read_image_build(const Node& node, const std::string& path,
                                           FileCollector& files, Problems& problems) {
  const std::size_t before = problems.count();
  const Fields f(node, path, keys_of<ImageBuild>(), problems, &files);
  ImageBuild out;
  fields(f, out);
  std::vector<ReferencedFile> all;
  if (const ReferencedFile* file = files.find(out.dockerfile)) {
    out.bases = bases_of(*f.find("dockerfile"), f.path("dockerfile"), *file, problems);
    all.push_back(*file);
  }
  const std::string folder = out.dockerfile.substr(0, out.dockerfile.rfind('/') + 1);
  f.each("files", [&](const Node& item, const std::string& where) {
    const std::string file = files.add(item, where);
    if (file.empty()) return;
    if (!file.starts_with(folder)) {
      problems.wrong(item, where, "a file in the folder of the Dockerfile or below it");
    } else if (const std::string name = file.substr(folder.size());
               name == kBuildDockerfile || name == kBuildIgnores) {
      problems.wrong(item, where, "another file: files lists all that is there, and no more");
    } else if (std::ranges::find(out.files, file) != out.files.end()) {
      problems.wrong(item, where, "each file once");
    } else {
      out.files.push_back(file);
      if (file != out.dockerfile) all.push_back(*files.find(file));
    }
  });
  if (problems.count() != before) return std::nullopt;
  out.inputs = inputs_of(out, all);
  return out;
}

void check_image_build(const Fields& contract, const Contract& c) {
  if (!c.environment.build) return;
  Problems& problems = contract.problems();
  if (c.policy.isolation == Isolation::kUserspace)
    problems.add(contract.at("policy"), "policy.isolation",
                 "userspace, and an image that is built from a Dockerfile by a Docker Engine",
                 "kernel, or the image by its digest: proctor images build NAME FOLDER --import "
                 "makes it and prints that");
  const ImageBuild& build = *c.environment.build;
  for (const std::string& file : build.files) {
    const bool judges = std::ranges::find(c.acceptance_files, file, &AcceptanceFile::from) !=
                            c.acceptance_files.end() ||
                        file == c.reference_patch;
    if (judges)
      problems.add(contract.at("environment"), "environment.image.files", "\"" + file + "\"",
                   "no file of the acceptance: the agent works in this image");
  }
}
}  // namespace proctor
