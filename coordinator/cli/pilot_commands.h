#pragma once
// Commands of staged pilots (docs/pilots.md): apart from command.h, which every command includes.
#include <CLI/CLI.hpp>

namespace proctor::cli {

void add_power(CLI::App& app, int& exit_code);
void add_screen(CLI::App& app, int& exit_code);
void add_selfcheck(CLI::App& app, int& exit_code);
void add_wait(CLI::App& app, int& exit_code);

}  // namespace proctor::cli
