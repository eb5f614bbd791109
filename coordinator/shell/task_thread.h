#pragma once
// TaskThread: one named thread for blocking work, first in first out.  The loop gives it closures;
// what they find out they post back to the loop themselves.
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

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

}  // namespace proctor
