#pragma once
// What a worker may be called.  Names of workers become labels, names of files and words on
// terminals, and a key of an allow-list is compared with them: so they are ids, not text.
#include <string_view>

namespace proctor {

// For messages: "a worker's name is ...".
inline constexpr std::string_view kWorkerNameRule =
    "1 to 100 letters, digits, '.', '_' and '-', beginning with a letter or a digit";

// Is it 1 to limits::kNameBytes of ASCII letters, digits, '.', '_' and '-', the first a letter or a
// digit?  Any thread.
bool is_worker_name(std::string_view text);

}  // namespace proctor
