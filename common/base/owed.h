#pragma once
// Owed: names of things that could not be removed when it was time (an engine was away), to be
// tried again when there is reason to hope.  In memory only: what a killed process owed is found by
// its labels.  Thread-safe; `remove` is called without a lock held.
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace proctor {

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
