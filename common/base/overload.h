#pragma once
// Overload{f, g, ...}: one callable out of several, for std::visit.
namespace proctor {
template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;
}  // namespace proctor
