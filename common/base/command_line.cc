#include "common/base/command_line.h"

#include <CLI/CLI.hpp>
#include <map>

namespace proctor::cli {
using Text = std::string_view;

Option Option::required(bool is) const {
  return Option(option_->required(is));
}
Option Option::check(std::function<std::string(const std::string&)> wrong, Text kind) const {
  return Option(option_->check(std::move(wrong), std::string(kind)));
}
Option Option::positive() const {
  return Option(option_->check(CLI::PositiveNumber));
}
Option Option::existing_file() const {
  return Option(option_->check(CLI::ExistingFile));
}
Option Option::one_of(std::initializer_list<const char*> words) const {
  return Option(
      option_->check(CLI::IsMember(std::vector<std::string>(words.begin(), words.end()))));
}
Option Option::one_of(std::initializer_list<std::uint32_t> numbers) const {
  return Option(option_->check(CLI::IsMember(std::vector<std::uint32_t>(numbers))));
}
template <OptionCount T>
Option Option::in_range(T least, T most) const {
  return Option(option_->check(CLI::Range(least, most)));
}
template Option Option::in_range(int, int) const;
template Option Option::in_range(std::uint32_t, std::uint32_t) const;
template Option Option::in_range(std::uint64_t, std::uint64_t) const;
Option Option::envname(Text name) const {
  return Option(option_->envname(std::string(name)));
}
Option Option::type_name(Text name) const {
  return Option(option_->type_name(std::string(name)));
}
Option Option::group(Text name) const {
  return Option(option_->group(std::string(name)));
}
Option Option::capture_default_str() const {
  return Option(option_->capture_default_str());
}
Option Option::excludes(Option other) const {
  return Option(option_->excludes(other.option_));
}
Option Option::expected(int least, int most) const {
  return Option(option_->expected(least, most));
}
Option Option::delimiter(char between) const {
  return Option(option_->delimiter(between));
}
Option Option::allow_extra_args(bool may) const {
  return Option(option_->allow_extra_args(may));
}
bool Option::empty() const {
  return option_->empty();
}

Command Command::add_subcommand(Text name, Text what, Text footer) const {
  CLI::App* command = app_->add_subcommand(std::string(name), std::string(what));
  if (!footer.empty()) command->footer(std::string(footer));
  return Command(command);
}
void Command::require_subcommand(int count) const {
  app_->require_subcommand(count);
}
void Command::footer(Text text) const {
  app_->footer(std::string(text));
}
void Command::group(Text name) const {
  app_->group(std::string(name));
}
void Command::callback(std::function<void()> act) const {
  app_->callback(std::move(act));
}
void Command::preparse_callback(std::function<void()> act) const {
  app_->preparse_callback([act = std::move(act)](std::size_t) { act(); });
}

template <OptionValue T>
Option Command::add_option(Text name, T& into, Text help) const {
  return Option(app_->add_option(std::string(name), into, std::string(help)));
}
template Option Command::add_option(Text, std::string&, Text) const;
template Option Command::add_option(Text, std::filesystem::path&, Text) const;
template Option Command::add_option(Text, double&, Text) const;
template Option Command::add_option(Text, std::int64_t&, Text) const;
template Option Command::add_option(Text, std::uint32_t&, Text) const;
template Option Command::add_option(Text, std::uint64_t&, Text) const;
template Option Command::add_option(Text, std::optional<std::uint32_t>&, Text) const;
template Option Command::add_option(Text, std::vector<std::string>&, Text) const;

Option Command::add_option(Text name, std::function<void(const std::string&)> take,
                           Text help) const {
  return Option(app_->add_option_function(std::string(name), take, std::string(help)));
}
Option Command::add_flag(Text name, bool& into, Text help) const {
  return Option(app_->add_flag(std::string(name), into, std::string(help)));
}
Option Command::add_flag(Text name, std::function<void()> take, Text help) const {
  return Option(app_->add_flag_function(
      std::string(name), [take = std::move(take)](std::int64_t) { take(); }, std::string(help)));
}
Option Command::add_numbered(Text name, std::function<void(int)> take, Text help,
                             const Numbered& words) const {
  std::string shown;
  for (const auto& [word, number] : words) shown += (shown.empty() ? "" : "|") + word;
  return Option(app_->add_option_function<int>(std::string(name), take, std::string(help))
                    ->type_name("ENUM")
                    ->transform(CLI::CheckedTransformer(
                        std::map<std::string, int>(words.begin(), words.end())))
                    ->option_text(shown));
}
void Command::remove_option(Text name) const {
  app_->remove_option(app_->get_option(std::string(name)));
}

std::size_t Command::count(Text option) const {
  return app_->count(std::string(option));
}
bool Command::has_parsed_subcommand() const {
  return !app_->get_subcommands().empty();
}

std::string Command::name() const {
  return app_->get_name();
}
bool Command::hidden() const {
  return app_->get_group().empty();
}
std::vector<Command> Command::subcommands() const {
  std::vector<Command> out;
  for (CLI::App* app : app_->get_subcommands({})) out.emplace_back(app);
  return out;
}
std::optional<Command> Command::subcommand(Text word) const {
  const auto found = app_->get_subcommands(
      [&](const CLI::App* app) { return app->check_name(std::string(word)); });
  return found.empty() ? std::nullopt : std::optional(Command(found.front()));
}
std::vector<std::string> Command::long_options() const {
  std::vector<std::string> out;
  for (const CLI::Option* option : app_->get_options({}))
    for (const std::string& name : option->get_lnames()) out.push_back("--" + name);
  return out;
}
std::vector<std::string> Command::operands() const {
  std::vector<std::string> out;
  for (const CLI::Option* option : app_->get_options({}))
    if (option->get_positional()) out.push_back(option->get_name(true));
  return out;
}
bool Command::takes_value(Text option) const {
  const CLI::Option* found = app_->get_option_no_throw(std::string(option));
  return found != nullptr && 0 < found->get_items_expected_max();
}

CommandLine::CommandLine(Text description) : Command(new CLI::App(std::string(description))) {}
CommandLine::~CommandLine() {
  delete app_;
}
void CommandLine::name(Text name) {
  app_->name(std::string(name));
}
void CommandLine::description(Text text) {
  app_->description(std::string(text));
}
void CommandLine::set_version(Text text) {
  app_->set_version_flag("--version", std::string(text));
}
void CommandLine::fallthrough() {
  app_->fallthrough();
}
void CommandLine::parse_complete_callback(std::function<void()> act) {
  app_->parse_complete_callback(std::move(act));
}

std::optional<int> CommandLine::parse(int argc, char** argv, int bad_input,
                                      const Explain& explain) {
  try {
    app_->parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& e) {
    std::optional<Mistake> mistake;
    if (dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr) mistake = Mistake::kUnknownWord;
    if (dynamic_cast<const CLI::RequiredError*>(&e) != nullptr) mistake = Mistake::kMissing;
    if (explain && mistake)
      if (const std::optional<int> said = explain(*mistake, e.what())) return said;
    // Zero for --help and --version.
    return app_->exit(e) == 0 ? 0 : bad_input;
  }
}

void throw_missing(Text option) {
  throw CLI::RequiredError(std::string(option));
}
}  // namespace proctor::cli
