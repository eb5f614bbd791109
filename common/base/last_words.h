#pragma once
// How a program of ours ends: without a core file, and with a line on standard error.
#include <cxxabi.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <csignal>
#include <cstring>
#include <exception>
#include <new>
#include <typeinfo>

namespace proctor {
// A core file is a copy of the memory of a process, made without a thought of its mode.
// For programs that hold keys, passwords and the declared secrets of contracts: neither they nor
// what they start leaves one.  A kernel that pipes cores to a program does so whatever the limit
// is, but not of a process that cannot be traced.  One without root stays traceable, to its own
// user alone: it could not write the maps of its user namespaces.
// Before any thread.  Source: core(5), PR_SET_DUMPABLE in prctl(2).
inline void forbid_core_dumps() {
  const rlimit none{0, 0};
  (void)::setrlimit(RLIMIT_CORE, &none);
  if (::geteuid() == 0) (void)::prctl(PR_SET_DUMPABLE, 0);
}
}  // namespace proctor

namespace proctor::last_words {
// How a program of ours ends that cannot go on: with a line on standard error and an exit code that
// means something, not by SIGABRT or SIGXFSZ without a word.  The functions of this namespace do
// not allocate.

inline constexpr int kNoMemory = 4;  // like any other lack of the host's
inline constexpr int kBug = 70;      // EX_SOFTWARE

inline const char*& program() {
  static const char* name = "proctor";
  return name;
}

inline void say(const char* text) noexcept {
  for (std::size_t left = std::strlen(text); 0 < left;) {
    const ssize_t n = ::write(STDERR_FILENO, text, left);
    if (n <= 0) return;
    text += n;
    left -= static_cast<std::size_t>(n);
  }
}

[[noreturn]] inline void out_of_memory() noexcept {
  say(program());
  say(": out of memory: the machine's, its control group's or that of ulimit -v. Nothing that was "
      "acknowledged is lost. Give it more and start it again: proctor resume CAMPAIGN, or the same "
      "proctor-worker command\n");
  ::_exit(kNoMemory);
}

// For an exception that was not caught, in any thread.
[[noreturn]] inline void on_terminate() noexcept {
  const std::type_info* const thrown = abi::__cxa_current_exception_type();
  if (thrown != nullptr &&
      (*thrown == typeid(std::bad_alloc) || *thrown == typeid(std::bad_array_new_length)))
    out_of_memory();
  say(program());
  say(": a mistake of ours: nobody caught ");
  say(thrown == nullptr ? "what ended it" : thrown->name());
  say("\n");
  ::_exit(kBug);
}

inline void no_end(int) noexcept {}

// ZeroMQ ends the program where the host gives it no thread, memory or descriptor; it has said why.
[[noreturn]] inline void on_abort(int) noexcept {
  say(program());
  say(": a library beneath it gave up, for the reason above; most often the host's limits (ulimit "
      "-v, -u, -n) leave it no room. Nothing that was acknowledged is lost. Give it more and start "
      "it again: proctor resume CAMPAIGN, or the same proctor-worker command\n");
  ::_exit(kNoMemory);
}

// For main(), before any thread.  `name`: a literal.  A write beyond ulimit -f fails with EFBIG
// from here on; a handler and not SIG_IGN, which what we start would inherit.
inline void prepare(const char* name) {
  program() = name;
  std::set_terminate(on_terminate);
  struct sigaction act {};
  act.sa_handler = no_end;
  act.sa_flags = SA_RESTART;
  (void)::sigaction(SIGXFSZ, &act, nullptr);
}

// After prepare(): abort() is taken as a library's that the host gives no room.
inline void explain_aborts() {
  struct sigaction act {};
  act.sa_handler = on_abort;
  (void)::sigaction(SIGABRT, &act, nullptr);
}
}  // namespace proctor::last_words
