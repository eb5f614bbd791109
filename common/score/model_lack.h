#pragma once
// A run whose model could not be had, for no fault of its agent's: the operator's key, the address
// or the provider itself.  Its rationale and its cause begin with these words, so that whoever has
// only them (a scheduler, a journal of any age) knows.  Pure.
#include <cstdint>
#include <string>
#include <string_view>

namespace proctor {

struct ModelLack {
  std::string why{};           // empty: it was had
  bool busy = false;           // a provider had no room: an overload
  std::uint64_t evidence = 0;  // the trace event that shows it; 0: none
  // Calls that nobody answered used up a cap of the run: its end by that cap is not the agent's.
  bool eaten = false;
  // Its provider failed after it had answered: an agent that ended well all the same is judged.
  bool later = false;
};

// "its model could not be had: WHY".
std::string no_model(std::string_view why);
bool is_no_model(std::string_view rationale);

}  // namespace proctor
