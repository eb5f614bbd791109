#pragma once
// Commands and their options, parsed by CLI11.  Its headers cost seconds of each unit that includes
// them, so command_line.cc alone does.  Words and rules are CLI11's.
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace proctor::cli {
template <class T, class... Some>
concept AnyOf = (std::same_as<T, Some> || ...);
// Types that a value on the command line is converted to.
template <class T>
concept OptionValue =
    AnyOf<T, std::string, std::filesystem::path, double, std::int64_t, std::uint32_t, std::uint64_t,
          std::optional<std::uint32_t>, std::vector<std::string>>;
template <class T>
concept OptionCount = AnyOf<T, int, std::uint32_t, std::uint64_t>;

// Stands for one option of a command that lives elsewhere; cheap to copy.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required(bool is = true) const;
  // `wrong` says what is wrong with a value, or nothing; `kind` names such values in the help.
  Option check(std::function<std::string(const std::string&)> wrong, std::string_view kind) const;
  Option positive() const;
  Option existing_file() const;
  Option one_of(std::initializer_list<const char*> words) const;
  Option one_of(std::initializer_list<std::uint32_t> numbers) const;
  template <OptionCount T>
  Option in_range(T least, T most) const;
  Option envname(std::string_view name) const;
  Option type_name(std::string_view name) const;
  Option group(std::string_view name) const;
  Option capture_default_str() const;
  Option excludes(Option other) const;
  Option expected(int least, int most) const;
  Option delimiter(char between) const;
  Option allow_extra_args(bool may) const;
  bool empty() const;  // it was not given

 private:
  CLI::Option* option_;
};

// Stands for one command that lives in its CommandLine; cheap to copy.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  // Without a footer it has that of this command.
  Command add_subcommand(std::string_view name, std::string_view what,
                         std::string_view footer = {}) const;
  void require_subcommand(int count) const;
  void footer(std::string_view text) const;
  void group(std::string_view name) const;
  void callback(std::function<void()> act) const;
  void preparse_callback(std::function<void()> act) const;

  template <OptionValue T>
  Option add_option(std::string_view name, T& into, std::string_view help = {}) const;
  Option add_option(std::string_view name, std::function<void(const std::string&)> take,
                    std::string_view help) const;
  Option add_flag(std::string_view name, bool& into, std::string_view help = {}) const;
  Option add_flag(std::string_view name, std::function<void()> take, std::string_view help) const;
  // One of these words; the help shows them in this order.
  template <class Enum>
  Option add_choice(std::string_view name, Enum& into, std::string_view help,
                    std::initializer_list<std::pair<const char*, Enum>> words) const {
    Numbered numbered;
    for (const auto& [word, value] : words) numbered.emplace_back(word, static_cast<int>(value));
    const auto take = [&into](int number) { into = static_cast<Enum>(number); };
    return add_numbered(name, take, help, numbered);
  }
  void remove_option(std::string_view name) const;

  // After it was parsed.
  std::size_t count(std::string_view option) const;
  bool has_parsed_subcommand() const;

  // How it is declared.
  std::string name() const;
  bool hidden() const;
  std::vector<Command> subcommands() const;
  std::optional<Command> subcommand(std::string_view word) const;
  std::vector<std::string> long_options() const;  // with their dashes
  std::vector<std::string> operands() const;
  bool takes_value(std::string_view option) const;

 protected:
  using Numbered = std::vector<std::pair<std::string, int>>;
  Option add_numbered(std::string_view name, std::function<void(int)> take, std::string_view help,
                      const Numbered& words) const;

  CLI::App* app_;
};

enum class Mistake { kUnknownWord, kMissing };

class CommandLine : public Command {
 public:
  explicit CommandLine(std::string_view description = {});
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  void name(std::string_view name);
  void description(std::string_view text);
  void set_version(std::string_view text);
  void fallthrough();
  void parse_complete_callback(std::function<void()> act);

  // Runs the callbacks of what was typed.  An exit code: the help was asked for (0), or what was
  // typed is wrong.  That is said, unless `explain` has said it and returns an exit code.
  using Explain = std::function<std::optional<int>(Mistake, const std::string& says)>;
  std::optional<int> parse(int argc, char** argv, int bad_input, const Explain& explain = {});
};

// For callbacks: the mistake that `option` is not there.
[[noreturn]] void throw_missing(std::string_view option);
}  // namespace proctor::cli
