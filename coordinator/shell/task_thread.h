#pragma once
// TaskThread: one named thread for blocking work, first in first out.  The loop gives it closures;
// what they find out they post back to the loop themselves.
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace proctor {

class TaskThread {
 public:
  explicit TaskThread(std::string name);
  ~TaskThread();  // finishes what was given, then joins
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;
  // Any thread.  Tasks must not throw.
  void post(std::function<void()> task);
  std::size_t waiting() const;

 private:
  void run();
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

// Several of them, for work that mostly waits for a disk.  Tasks of one key run in their order, one
// after the other; between keys there is no order.
class TaskLanes {
 public:
  TaskLanes(const std::string& name, std::size_t lanes);
  void post(std::uint64_t key, std::function<void()> task);
  std::size_t waiting() const;

 private:
  std::vector<std::unique_ptr<TaskThread>> lanes_;
};

}  // namespace proctor
