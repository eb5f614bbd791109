#pragma once
// proctor merge: campaigns of one configuration class as one table.

namespace proctor::cli {

class Command;

void add_merge(Command app, int& exit_code);

}  // namespace proctor::cli
