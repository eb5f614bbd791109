// proctor completion SHELL, and the hidden command that its scripts ask.
#include "coordinator/cli/completion.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <set>

#include "coordinator/aggregate/columns.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/open_journal.h"

namespace proctor::cli {
namespace {
using Candidates = std::set<std::string>;

// Where on the line we are.
struct Place {
  Command command;
  std::vector<std::string> operands;
  std::string option;  // the word is the value of this one; empty: of none
};

Place walk(Command app, const std::vector<std::string>& words) {
  Place at{app, {}, ""};
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {  // the first is the program
    const std::string& word = words[i];
    if (!std::exchange(at.option, "").empty()) continue;
    if (word.starts_with("-")) {
      at.option = at.command.takes_value(word) ? word : "";
      continue;
    }
    if (const auto inner = at.command.subcommand(word); at.operands.empty() && inner)
      at.command = *inner;
    else
      at.operands.push_back(word);
  }
  return at;
}

// Folders that are campaigns, and those on the way to one.
void add_folders(const std::string& word, Candidates& out) {
  constexpr std::size_t kLookedAt = 2'000;
  const std::size_t slash = word.rfind('/');
  const std::string typed = slash == std::string::npos ? "" : word.substr(0, slash + 1);
  std::error_code ec;
  std::size_t looked = 0;
  for (fs::directory_iterator it(typed.empty() ? "." : typed, ec), end;
       !ec && it != end && looked < kLookedAt; it.increment(ec), ++looked) {
    const std::string name = it->path().filename().string();
    if (!(typed + name).starts_with(word)) continue;
    if (name.starts_with(".") && !word.substr(typed.size()).starts_with(".")) continue;
    std::error_code not_there;
    if (!it->is_directory(not_there)) continue;
    const bool campaign = fs::exists(it->path() / "campaign.yaml", not_there);
    out.insert(typed + name + (campaign ? "" : "/"));
  }
}

void add_run_names(const Registration& r, const std::string& word, Candidates& out) {
  const auto slashes = std::ranges::count(word, '/');
  const std::string parent = word.substr(0, word.rfind('/') + 1);  // with its slash
  if (slashes == 0) {
    for (const auto& [task, digest] : r.contracts) out.insert(task + "/");
  } else if (slashes == 1) {
    if (r.contracts.contains(parent.substr(0, parent.size() - 1)))
      for (const auto& [method, digest] : r.methods) out.insert(parent + method + "/");
  } else if (slashes == 2) {
    constexpr std::uint64_t kShown = 200;
    std::uint64_t count = r.stages.empty() ? r.replicates : 0;
    for (const std::string& stage : r.stages) {
      const auto own = r.stage_draws.find(stage);
      count +=
          own == r.stage_draws.end() ? r.replicates : own->second.replicates.value_or(r.replicates);
    }
    for (std::uint64_t n = 1; n <= std::min(count, kShown); ++n)
      out.insert(parent + "r" + std::to_string(n));
  }
}

// What `proctor try` left, as --try takes it.
void add_tries(const fs::path& campaign, Candidates& out) {
  constexpr std::size_t kLookedAt = 2'000;
  std::size_t looked = 0;
  for (const fs::path& task : paths_in(StateFolder{campaign}.state() / "try")) {
    if (kLookedAt <= looked) return;
    for (const fs::path& method : paths_in(task)) {
      if (is_folder(method))
        out.insert(task.filename().string() + "/" + method.filename().string());
      ++looked;
    }
  }
}

void add_selections(const Registration& r, const std::string& word, Candidates& out) {
  if (word.find('/') == std::string::npos) {
    out.insert("all");
    for (const auto& [task, digest] : r.contracts)
      out.insert(r.methods.contains(task) ? "task:" + task : task);
    for (const auto& [method, digest] : r.methods)
      out.insert(r.contracts.contains(method) ? "method:" + method : method);
  }
  add_run_names(r, word, out);
}

void add_envelopes(const Registration& r, Candidates& out) {
  for (const auto& [name, cap] : r.envelopes)
    if (name != "run" && name != "task") out.insert(name);
  for (const std::string& stage : r.stages) out.insert("stage:" + stage);
  for (const auto& [task, digest] : r.contracts) out.insert("task:" + task);
}

void add_workers(const fs::path& folder, Candidates& out) {
  const Result<StatusSnapshot> status = last_status(StateFolder{folder});
  if (!status.ok()) return;
  for (const StatusSnapshot::Worker& w : status->workers) out.insert(w.name);
}

// The words of a filter, and the values of one that has a list of them.
void add_filter(const std::string& word, Candidates& out) {
  const auto columns = aggregate::run_columns({});
  for (const auto& c : columns.all()) {
    if (c.word.empty()) continue;
    const std::string start = c.word + "=";
    if (!word.starts_with(start))
      out.insert(start);
    else
      for (const std::string_view value : c.values) out.insert(start + std::string(value));
  }
}

void add_operand(const Place& at, const std::string& word, Candidates& out) {
  const std::vector<std::string> operands = at.command.operands();
  if (operands.size() <= at.operands.size()) return;
  const std::string& name = operands[at.operands.size()];
  if (name == "CAMPAIGN" || name == "PATH") return add_folders(word, out);
  if (name == "SHELL") {
    out.insert({"bash", "fish", "zsh"});
    return;
  }
  if (at.operands.empty()) return;
  const fs::path folder = at.operands.front();
  if (name == "WORKER") return add_workers(folder, out);
  if (name == "RUN") add_tries(folder, out);
  const Result<std::optional<Registration>> read = read_registration(folder);
  if (!read.ok() || !*read) return;
  const Registration& registration = **read;
  if (name == "RUN") add_run_names(registration, word, out);
  if (name == "RUNS") add_selections(registration, word, out);
  if (name == "SCOPE") add_envelopes(registration, out);
  if (name == "STAGE") out.insert(registration.stages.begin(), registration.stages.end());
  if (name == "TASK")
    for (const auto& [task, digest] : registration.contracts) out.insert(task);
}
}  // namespace

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> out{""};
  char quote = '\0';
  bool in_word = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == '\0' && (c == ' ' || c == '\t')) {
      if (in_word) out.emplace_back();
      in_word = false;
      continue;
    }
    in_word = true;
    if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && quote != '\'' && i + 1 < line.size()) {
      out.back().push_back(line[++i]);
    } else {
      out.back().push_back(c);
    }
  }
  return out;
}

std::vector<std::string> completions(Command app, std::string_view line) {
  const std::vector<std::string> words = words_of(line);
  if (words.size() < 2) return {};
  const std::string& word = words.back();
  const Place at = walk(app, words);
  Candidates all;
  if (!at.option.empty()) {
    if (at.option == "--where") add_filter(word, all);
  } else if (word.starts_with("-")) {
    for (std::string& name : at.command.long_options()) all.insert(std::move(name));
  } else {
    if (at.operands.empty())
      for (const Command sub : at.command.subcommands())
        if (!sub.hidden()) all.insert(sub.name());
    add_operand(at, word, all);
  }
  std::vector<std::string> out;
  for (const std::string& candidate : all)
    if (candidate.starts_with(word)) out.push_back(candidate);
  return out;
}

void add_completion(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "completion", "print the completion script of a shell",
      "Example:\n  proctor completion bash > ~/.proctor-completion   (and `source` that in "
      "~/.bashrc)\n"
      "  proctor completion fish > ~/.config/fish/completions/proctor.fish\n"
      "It completes commands, options, campaigns, runs and workers.");
  auto shell = std::make_shared<std::string>();
  command.add_option("SHELL", *shell, "bash, zsh or fish").required();
  command.callback([=, &exit_code] {
    const std::map<std::string_view, const char*> scripts = {
        {"bash", kBashCompletion}, {"zsh", kZshCompletion}, {"fish", kFishCompletion}};
    const auto script = scripts.find(*shell);
    if (script == scripts.end()) {
      exit_code = complain({Errc::kInvalid, "there are scripts for bash, zsh and fish"});
      return;
    }
    std::fputs(script->second, stdout);
  });
  const Command hidden =
      app.add_subcommand("__complete", "what could come next, for those scripts");
  hidden.group("");
  auto line = std::make_shared<std::string>();
  hidden.add_option("LINE", *line, "the line up to the cursor").required();
  hidden.callback([=] {
    for (const std::string& candidate : completions(app, *line)) std::puts(candidate.c_str());
  });
}

const char* const kBashCompletion =
    R"bash(# bash completion for proctor; in ~/.bashrc:  source <(proctor completion bash)
_proctor() {
  local line=${COMP_LINE:0:COMP_POINT} candidate
  local word=${line##*[[:space:]]}
  COMPREPLY=()
  while IFS= read -r candidate; do
    COMPREPLY+=("$candidate")
  done < <("${COMP_WORDS[0]}" __complete "$line" 2>/dev/null)
  # readline replaces what stands behind the last colon or equals sign only.
  if [[ $word == *[:=]* && $COMP_WORDBREAKS == *[:=]* ]]; then
    local before=${word%"${word##*[:=]}"} i
    for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#"$before"}; done
  fi
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/=] ]]; then
    compopt -o nospace 2>/dev/null
  fi
}
complete -F _proctor proctor
)bash";

const char* const kZshCompletion = R"zsh(#compdef proctor
# zsh completion for proctor; in ~/.zshrc, after compinit:  source <(proctor completion zsh)
_proctor() {
  local -a all open closed
  all=("${(@f)$("${words[1]}" __complete "${LBUFFER}" 2>/dev/null)}")
  open=("${(@M)all:#*[/=]}")
  closed=("${(@)all:#*[/=]}")
  closed=("${(@)closed:#}")
  (( ${#open} )) && compadd -S '' -- "${open[@]}"
  (( ${#closed} )) && compadd -- "${closed[@]}"
}
compdef _proctor proctor
)zsh";

// The program is the one that was typed: `commandline -opc` has its words, as bash's COMP_WORDS.
const char* const kFishCompletion =
    R"fish(# fish completion for proctor; in ~/.config/fish/completions/proctor.fish
function __proctor_complete
    set -l typed (commandline -opc)
    $typed[1] __complete (commandline -cp | string collect) 2>/dev/null
end
complete -c proctor -f -a '(__proctor_complete)'
)fish";
}  // namespace proctor::cli
