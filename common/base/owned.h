#pragma once
// One line of RAII per C handle: using GitRepo = Owned<git_repository, git_repository_free>;
#include <memory>

namespace proctor {

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

}  // namespace proctor
