#pragma once
// An envelope that several campaigns on one Redis share, and what must be known of whom so that
// they never pass it together, whatever is killed or lost (docs/ledger.md, "Shared envelopes").
//
// Each campaign, a member, answers for its own part: its journal has it.  Redis adds the parts up
// and admits, in the step that also reserves.  What only Redis knows may be lost, so every journal
// also knows the other members, and how much each may hold at most: its ceiling.  The rules:
//   1. a member reserves up to the ceiling that the journals of all other members know, its limit;
//      a new one has none until they do
//   2. a Redis that lost the envelope gets it back from a member with a limit, who names all that
//      its journal knows: each of them counts as its ceiling until it has told its part itself
//   3. who was never a member waits for one, or for a person's word that there is none
// So two members with limits always know each other, and no part is ever forgotten.
//
// SharedBook is what one member's journal knows.  Pure; one thread at a time.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/ledger/ledger.h"

namespace proctor {

// In Redis kHeard is "a", kUnheard "w", kLeft "l" (shared.lua).
struct SharedMember {
  enum class State { kHeard, kUnheard, kLeft };
  std::string id;    // of the campaign
  std::string name;  // for people: the campaign's name and its host
  State state = State::kUnheard;
  MicroUsd ceiling;          // it never holds more than this
  MicroUsd limit;            // how much of that all others know of; none: it is not a member yet
  MicroUsd spent, reserved;  // as it last said; of kUnheard: nothing is known
  std::uint64_t since = 0;   // the change of the members that others must know before it may more
  std::uint64_t noted = 0;   // up to which change its own journal knows the members
  std::int64_t seen_ms = 0;  // Unix time at which Redis heard of it
  // What of the envelope it takes.
  MicroUsd held() const { return state == State::kUnheard ? ceiling : spent + reserved; }
};
std::string_view to_string(SharedMember::State state);  // "here", "unheard", "left"

// The envelope as Redis has it at one instant.
struct SharedView {
  MicroUsd cap;  // the largest that a member's journal has
  std::uint64_t change = 0;
  std::vector<SharedMember> members;  // by id
  const SharedMember* find(std::string_view id) const;
  // What everybody but `id` takes of it, and whether some of that may come back.
  Elsewhere elsewhere_of(std::string_view id) const;
};

class SharedBook {
 public:
  // As the journal has it.  A limit: it is a member.
  SharedBook(std::string self, MicroUsd limit, std::vector<SharedMember> known);

  const std::string& self() const { return self_; }
  MicroUsd limit() const { return limit_; }
  const std::map<std::string, SharedMember>& known() const { return known_; }

  // The others of whom the journal does not know what it has to.
  std::vector<SharedMember> news(const SharedView& view) const;
  // May the limit become the ceiling that Redis has?  All others know it, and it knows them.
  bool may_enter(const SharedView& view) const;

  // Both are in the journal.
  void note(const std::vector<SharedMember>& members);
  void enter(MicroUsd limit) { limit_ = limit; }

 private:
  std::string self_;
  MicroUsd limit_;
  std::map<std::string, SharedMember> known_;  // others, by id
};

}  // namespace proctor
