#pragma once
// Commands of staged pilots (docs/pilots.md): apart from command.h, which every command includes.
#include <string>

namespace proctor::cli {

class Command;

// Exit code of run, resume and wait where nothing goes on before a person has decided.
inline constexpr int kWaitsForPerson = 5;

// A sentence of a scheduler, which knows no folder, with the campaign's where a command in it says
// CAMPAIGN ("proctor pilot approve CAMPAIGN full ...").  Whoever shows one to people or programs
// asks this.
std::string told_with_folder(std::string text, const std::string& folder);

void add_pilot(Command app, int& exit_code);
void add_power(Command app, int& exit_code);
void add_screen(Command app, int& exit_code);
void add_selfcheck(Command app, int& exit_code);
void add_wait(Command app, int& exit_code);

}  // namespace proctor::cli
