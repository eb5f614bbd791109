#pragma once
// A part of a bench in a process of its own: it has its own processor time, memory and locks, and
// dies with the bench.  Bench and part tell each other lines.
#include <sys/types.h>

#include <functional>
#include <string>

#include "common/base/owned.h"

namespace proctor::bench {

class Line {
 public:
  explicit Line(UniqueFd fd) : fd_(std::move(fd)) {}
  void say(const std::string& text) const;
  std::string hear() const;  // empty: the other end has gone

 private:
  UniqueFd fd_;
};

class Child {
 public:
  // `core`: the processor it runs on, counted among those we may use; with one alone, or -1, any.
  // Requires: this process has one thread.
  static Child start(int core, const std::function<void(const Line&)>& body);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();  // ends it

  const Line& line() const { return line_; }
  std::string ask(const std::string& text) const;
  // Processor time of it and the children that have ended, in microseconds.
  double cpu_us() const;

 private:
  Child(pid_t pid, UniqueFd fd) : pid_(pid), line_(std::move(fd)) {}
  pid_t pid_;
  Line line_;
};

// This process on one of the processors that it may use.
void run_on(int core);

}  // namespace proctor::bench
