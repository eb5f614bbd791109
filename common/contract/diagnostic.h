#pragma once
// What is wrong with a file a person wrote, said so that the person can repair it: where, which
// field, what was found, what was expected, and the word that was probably meant.
// Diagnostics collects all of them, so that one `proctor check` shows every error at once.
// Pure values; not thread-safe.
#include <cstdint>
#include <string>
#include <vector>

namespace proctor {

// A place in a text, both from 1.  Columns count bytes.
struct Mark {
  std::uint32_t line = 1;
  std::uint32_t column = 1;
  friend bool operator==(Mark, Mark) = default;
};

struct Diagnostic {
  std::string file;
  Mark at;
  std::string field;  // "checks[0].timeout"; empty: the document
  std::string found;
  std::string expected;
  std::string suggestion;  // empty: none
};

// `file:line:column: field: found X, expected Y (did you mean "z"?)`, safe to print.
std::string to_string(const Diagnostic& diagnostic);

class Diagnostics {
 public:
  // Keeps the first kKept and counts the rest: a hostile file must not fill memory with complaints.
  static constexpr std::size_t kKept = 1000;
  void add(Diagnostic diagnostic);
  bool empty() const { return count_ == 0; }
  std::size_t count() const { return count_; }
  const std::vector<Diagnostic>& kept() const { return kept_; }
  // One line each, ordered as found; the last line says how many were left out, if any were.
  std::string text() const;

 private:
  std::vector<Diagnostic> kept_;
  std::size_t count_ = 0;
};

}  // namespace proctor
