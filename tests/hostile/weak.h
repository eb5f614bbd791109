#pragma once
// Sandboxes that are weakened on purpose, each in one way: the program that makes them is replaced
// by a script of this name which changes what it is asked for, and then runs the real one.  None of
// it is in the product.
#include <string>
#include <vector>

#include "common/base/files.h"

namespace proctor::testing {

struct Weakness {
  const char* name;     // "no pid namespace"
  const char* seen;     // what the host sees of it
  std::string changes;  // of the script, in shell
};

struct WeakKind {
  const char* kind;           // as the selftest names it
  const char* program;        // "bwrap"
  const char* others;         // programs that other kinds would be made with here
  const char* likewise = "";  // a kind that the same program makes
  const char* engine = "";    // a script with the words to start one; empty: there is none
  std::string script{};       // @CHANGES@ and @REAL@ stand for what their names say
  std::vector<Weakness> weaknesses{};
};
// Of the kind under test.
WeakKind weak_kind();
WeakKind weak_bubblewrap();
WeakKind weak_docker();
WeakKind weak_oci();

// False, with a MESSAGE that names the reason: not on this machine.
bool may_weaken(const WeakKind& kind);
// A folder for PATH, in `dir`, with the weakened program in it.
std::string lay_weak_program(const fs::path& dir, const WeakKind& kind, const std::string& changes);

}  // namespace proctor::testing
