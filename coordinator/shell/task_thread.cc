#include "coordinator/shell/task_thread.h"

#include <pthread.h>

namespace proctor {

TaskThread::TaskThread(std::string name) : thread_([this] { run(); }) {
  constexpr std::size_t kKernelMax = 15;
  pthread_setname_np(thread_.native_handle(), name.substr(0, kKernelMax).c_str());
}

TaskThread::~TaskThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void TaskThread::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

std::size_t TaskThread::waiting() const {
  const std::lock_guard lock(mutex_);
  return tasks_.size();
}

void TaskThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

TaskLanes::TaskLanes(const std::string& name, std::size_t lanes) {
  for (std::size_t i = 0; i < lanes; ++i) lanes_.push_back(std::make_unique<TaskThread>(name));
}

void TaskLanes::post(std::uint64_t key, std::function<void()> task) {
  lanes_[key % lanes_.size()]->post(std::move(task));
}

std::size_t TaskLanes::waiting() const {
  std::size_t all = 0;
  for (const auto& lane : lanes_) all += lane->waiting();
  return all;
}

}  // namespace proctor
