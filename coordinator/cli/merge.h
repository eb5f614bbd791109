#pragma once
// proctor merge: campaigns of one configuration class as one table.

namespace CLI {
class App;
}

namespace proctor::cli {

void add_merge(CLI::App& app, int& exit_code);

}  // namespace proctor::cli
