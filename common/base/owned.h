#pragma once
// Owners: of a file descriptor, of a handle of a C library, of what is still to be removed.
#include <unistd.h>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace proctor {
// Owns one file descriptor.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }
  int get() const { return fd_; }
  bool valid() const { return 0 <= fd_; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (0 <= fd_) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

// One line of RAII per C handle: using GitRepo = Owned<git_repository, git_repository_free>;
template <auto Free>
struct FreeWith {
  template <class T>
  void operator()(T* p) const noexcept {
    Free(p);
  }
};
template <class T, auto Free>
using Owned = std::unique_ptr<T, FreeWith<Free>>;

// For `T** out` parameters: OutPtr(handle) fills the handle even when the call fails half-way.
template <class P>
class OutPtr {
 public:
  explicit OutPtr(P& target) : target_(target) {}
  ~OutPtr() { target_.reset(raw_); }
  OutPtr(const OutPtr&) = delete;
  OutPtr& operator=(const OutPtr&) = delete;
  operator typename P::pointer *() { return &raw_; }  // NOLINT: implicit is its purpose

 private:
  P& target_;
  typename P::pointer raw_ = nullptr;
};

// Owed: names of things that could not be removed when it was time (an engine was away), to be
// tried again when there is reason to hope.  In memory only: what a killed process owed is found by
// its labels.  Thread-safe; `remove` is called without a lock held.
class Owed {
 public:
  void add(std::string name) {
    const std::lock_guard lock(mutex_);
    names_.push_back(std::move(name));
  }
  // `remove(name)` is true when it is gone; the others stay owed.
  template <class Remove>
  void pay(const Remove& remove) {
    std::vector<std::string> names;
    {
      const std::lock_guard lock(mutex_);
      names.swap(names_);
    }
    for (std::string& name : names)
      if (!remove(name)) add(std::move(name));
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> names_;
};
}  // namespace proctor
