#pragma once
// What may be in a request, by type: items, parts of content and tools that an agent writes itself
// and whose cost their bytes bound.  What is not named here is not passed on: a provider knows more
// types than anybody here, and an item that only names stored content is of any size.
// Pure; any thread.
#include <string>
#include <string_view>

#include "common/contract/models_file.h"

namespace proctor {

enum class Inside {
  kNothing,    // text, and whatever else is written out
  kParts,      // a text, or a list of parts
  kPicture,    // a picture in the request itself
  kTools,      // tools, each judged as those of the request
  kReasoning,  // encrypted, or in clear and without the id of what is stored
  kReference,  // to a tool of the request, which the provider prints once more
};
struct ShapeRule {
  std::string_view type;
  std::string_view needs;  // the member without which it is nothing but a name; empty: none
  Inside inside = Inside::kNothing;
};
enum class Level { kItem, kPart };

// nullptr: of a type that is not passed on.
const ShapeRule* shape_rule(ModelApi api, Level level, std::string_view type);
// The types that may be there, for people.
std::string shape_types(ModelApi api, Level level);

// A member by which a part or message names something that is not in the request.
bool is_outside(std::string_view key);

// A member of the request that makes a provider fetch, run or choose.
struct BarredMember {
  std::string_view key;
  std::string_view what;     // it is: "a search of the provider's"
  std::string_view instead;  // what to do
};
// `key` in small letters, and in ASCII where another letter is one of it in another case (the
// Kelvin sign, the long s).
std::string usual_spelling(std::string_view key);
// Of a key in its usual spelling; null: none of them.
const BarredMember* barred_member(std::string_view usual);

enum class Runs { kClient, kProvider, kUnknown };
// Who runs a tool of this type; empty: it has none.
Runs runs_tool(ModelApi api, std::string_view type);

}  // namespace proctor
