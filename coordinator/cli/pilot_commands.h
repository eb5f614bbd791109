#pragma once
// Commands of staged pilots (docs/pilots.md): apart from command.h, which every command includes.
#include <CLI/CLI.hpp>
#include <string>

namespace proctor::cli {

// Exit code of run, resume and wait where nothing goes on before a person has decided.
inline constexpr int kWaitsForPerson = 5;

// What a gate waits for, with the campaign's folder where its scheduler, which knows none, says
// CAMPAIGN.
std::string told_gate(std::string text, const std::string& folder);

void add_pilot(CLI::App& app, int& exit_code);
void add_power(CLI::App& app, int& exit_code);
void add_screen(CLI::App& app, int& exit_code);
void add_selfcheck(CLI::App& app, int& exit_code);
void add_wait(CLI::App& app, int& exit_code);

}  // namespace proctor::cli
