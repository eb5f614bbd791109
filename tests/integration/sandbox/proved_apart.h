#pragma once
// Before a test does what would harm a host: the proof, from outside, that what runs by this spec
// is held apart from it, as the selftest asks before it dares anything.
#include <doctest/doctest.h>

#include "tests/integration/sandbox/engine_under_test.h"
#include "worker/selftest/attack_program.h"
#include "worker/selftest/isolation_proof.h"

namespace proctor::testing {

// Fails the test where it is not.  False, with a MESSAGE: nobody here can see whether it is.
inline bool proved_apart(Bench& bench, SandboxSpec spec) {
  const fs::path dir = bench.scratch() / "proof";
  REQUIRE(make_dirs(dir / "program").ok());
  REQUIRE(write_file(dir / "program/attack", attack_program(), Durability::kLazy, 0755).ok());
  spec.mounts.push_back({dir / "program", kAttackAt, false});
  const auto proof = prove_isolation(bench.engine(), spec, {dir, {}});
  if (!proof.ok()) FAIL(proof.error().detail);
  REQUIRE_MESSAGE(proof->verdict != IsolationProof::Verdict::kRefuted, proof->detail);
  if (proof->verdict == IsolationProof::Verdict::kProved) return true;
  MESSAGE("not run: " << proof->detail);
  return false;
}

}  // namespace proctor::testing
