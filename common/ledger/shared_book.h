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
// SharedBook is what one member's journal knows.  Farewell is how a member ends.  Both are pure;
// one thread at a time.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
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

// What a journal says of a shared envelope, one note each: another member, or how much of the
// envelope is this campaign's own to use (none: it is no member).  The last one of each counts.
struct SharedLimit {
  MicroUsd limit;
};
using SharedFact = std::variant<SharedMember, SharedLimit>;

class SharedBook {
 public:
  // Of a journal that says nothing yet.
  explicit SharedBook(std::string self) : self_(std::move(self)) {}

  // It is in the journal.  The only way in which a book changes, in this life and in the next one.
  void apply(const SharedFact& fact);

  const std::string& self() const { return self_; }
  MicroUsd limit() const { return limit_; }
  const std::map<std::string, SharedMember>& known() const { return known_; }

  // The others of whom the journal does not know what it has to.
  std::vector<SharedMember> news(const SharedView& view) const;
  // May the limit become the ceiling that Redis has?  All others know it, and it knows them.
  bool may_enter(const SharedView& view) const;
  // What the journal has to be told, and by that the book; nothing: it knows all that it must.
  std::vector<SharedFact> to_note(const SharedView& view) const;

 private:
  std::string self_;
  MicroUsd limit_;
  std::map<std::string, SharedMember> known_;  // others, by id
};

// How a member leaves.  What only Redis knows may be lost: were it lost right after the leave,
// those who stay would bring the envelope back with the leaver at its ceiling, and it does not come
// again to say less.  So it stays, a little, until the journals of all who are here know that it
// left, and says it again to a Redis that has forgotten.
class Farewell {
 public:
  enum class Step { kSay, kWait, kDone };
  explicit Farewell(std::string self) : self_(std::move(self)) {}
  // With what Redis has now; asked several times a second.
  Step next(const SharedView& view);

 private:
  // Of one that does not know yet: when Redis heard of it last, and for how many looks not since.
  struct Sign {
    std::int64_t seen_ms = 0;
    int looks = 0;
  };
  std::string self_;
  std::map<std::string, Sign> awaited_;  // by id
};

}  // namespace proctor
