#pragma once
// What a layer remembers of the steps that made it, so that whoever uses it is charged as its maker
// was.  Thread-safe.
#include <chrono>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/contract/contract.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {

// Behind the number of a step: the files of its streams.
inline constexpr const char* kSetupOut = ".stdout";
inline constexpr const char* kSetupErr = ".stderr";

Json record_of_step(const ExecOutcome& outcome);
ExecOutcome step_as_recorded(const Json& step);
// Fine where there is no such file.
Status copy_output(const fs::path& from, const fs::path& to);
// How long another run may take to make what these steps make.
std::chrono::milliseconds patience(const std::vector<SetupStep>& setup);
// The sandbox of a setup's place (setup_key.h).
std::string sandbox_word(const SandboxEngine& engine);

}  // namespace proctor
