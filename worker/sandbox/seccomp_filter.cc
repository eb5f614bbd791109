#include "worker/sandbox/seccomp_filter.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include <cerrno>
#include <cstddef>
#include <limits>
#include <map>
#include <vector>

#include "worker/sandbox/call_rules.h"

namespace proctor {
namespace {

using Compare = ArgumentTest::Compare;
using Code = std::vector<sock_filter>;

constexpr std::uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr unsigned kWord = 32;  // bits

std::uint32_t answer(int error) {
  return error == 0 ? kAllow : SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error);
}

sock_filter instruction(int code, std::uint32_t operand, std::uint8_t if_true = 0,
                        std::uint8_t if_false = 0) {
  return {static_cast<std::uint16_t>(code), if_true, if_false, operand};
}
sock_filter load(std::size_t offset) {
  return instruction(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}
sock_filter give(std::uint32_t action) {
  return instruction(BPF_RET | BPF_K, action);
}
void append(Code& code, const Code& more) {
  code.insert(code.end(), more.begin(), more.end());
}

// Over `skipped` where the number loaded is (or is at least) `operand`: a jump that depends on
// something reaches 255 instructions, one that does not reaches them all.
Code jump_over(int comparison, std::uint32_t operand, const Code& skipped) {
  const int code = BPF_JMP | comparison | BPF_K;
  if (skipped.size() <= std::numeric_limits<std::uint8_t>::max())
    return {instruction(code, operand, static_cast<std::uint8_t>(skipped.size()), 0)};
  return {instruction(code, operand, 0, 1),
          instruction(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(skipped.size()))};
}

// Half an argument, and where it lies.
std::uint32_t low(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}
std::uint32_t high(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> kWord);
}
std::size_t place(unsigned index, bool upper) {
  constexpr bool kLittle = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
  return offsetof(seccomp_data, args) + index * sizeof(std::uint64_t) +
         (upper == kLittle ? sizeof(std::uint32_t) : 0);
}

// Goes on at its end where the test holds, else on to what stands `away` instructions behind it.
Code check(const ArgumentTest& test, std::size_t away) {
  const auto out = static_cast<std::uint8_t>(away);
  const int equal = BPF_JMP | BPF_JEQ | BPF_K;
  switch (test.compare) {
    case Compare::kEqual:
      return {load(place(test.index, true)),
              instruction(equal, high(test.value), 0, static_cast<std::uint8_t>(away + 2)),
              load(place(test.index, false)), instruction(equal, low(test.value), 0, out)};
    case Compare::kMasked:
      PROCTOR_ASSERT(high(test.mask) == 0 && high(test.value) == 0);
      return {load(place(test.index, false)),
              instruction(BPF_ALU | BPF_AND | BPF_K, low(test.mask)),
              instruction(equal, low(test.value), 0, out)};
  }
  PROCTOR_ASSERT(false);
}

// What becomes of one call: rules in turn, each of its tests or the next rule.
Code answer_by(const std::vector<const CallRule*>& rules) {
  Code out;
  const CallRule* rest = nullptr;
  for (const CallRule* rule : rules) {
    if (rule->rest) {
      rest = rule;
      continue;
    }
    Code one = {give(answer(rule->error))};
    for (auto test = rule->tests.rbegin(); test != rule->tests.rend(); ++test) {
      Code tested = check(*test, one.size());
      append(tested, one);
      one = std::move(tested);
    }
    append(out, one);
    if (rule->tests.empty()) return out;
  }
  out.push_back(give(answer(rest != nullptr ? rest->error : kOtherCalls)));
  return out;
}

// Calls that i386 has by numbers of their own, most of them since Linux 4.3 and 5.1, and for which
// libseccomp has made-up ones.  Source: arch/x86/entry/syscalls/syscall_32.tbl.
const std::map<std::string_view, int>& i386_numbers() {
  static const std::map<std::string_view, int> all = {
      {"socket", 359},      {"socketpair", 360},  {"bind", 361},       {"connect", 362},
      {"listen", 363},      {"accept4", 364},     {"getsockopt", 365}, {"setsockopt", 366},
      {"getsockname", 367}, {"getpeername", 368}, {"sendto", 369},     {"sendmsg", 370},
      {"recvfrom", 371},    {"recvmsg", 372},     {"shutdown", 373},   {"semget", 393},
      {"semctl", 394},      {"shmget", 395},      {"shmctl", 396},     {"shmat", 397},
      {"shmdt", 398},       {"msgget", 399},      {"msgsnd", 400},     {"msgrcv", 401},
      {"msgctl", 402},      {"recvmmsg", 337},    {"sendmmsg", 345}};
  return all;
}

// By the number of the call, which is loaded: from each first number on to the next one's.
using Ranges = std::vector<std::pair<std::uint32_t, Code>>;
Code decide(const Ranges& ranges, std::size_t from, std::size_t to) {
  if (from + 1 == to) return ranges[from].second;
  const std::size_t middle = from + (to - from) / 2;
  const Code below = decide(ranges, from, middle);
  Code out = jump_over(BPF_JGE, ranges[middle].first, below);
  append(out, below);
  append(out, decide(ranges, middle, to));
  return out;
}

Code decide_by_number(std::uint32_t machine) {
  std::map<std::uint32_t, std::vector<const CallRule*>> calls;
  for (const CallRule& rule : call_rules()) {
    for (const std::string_view name : rule.names) {
      const int number = call_number(machine, name);
      if (0 <= number)
        calls[static_cast<std::uint32_t>(number)].push_back(&rule);  // else: not there
    }
  }
  const Code other = {give(answer(kOtherCalls))};
  const auto same = [](const Code& a, const Code& b) {
    return a.size() == 1 && b.size() == 1 && a[0].k == b[0].k;
  };
  Ranges ranges;
  const auto begin_at = [&](std::uint32_t number, const Code& code) {
    if (ranges.empty() || !same(ranges.back().second, code)) ranges.emplace_back(number, code);
  };
  std::uint32_t next = 0;
  for (const auto& [number, rules] : calls) {
    if (next < number) begin_at(next, other);
    begin_at(number, answer_by(rules));
    next = number + 1;
  }
  begin_at(next, other);
  return decide(ranges, 0, ranges.size());
}

Json to_json(const ArgumentTest& test) {
  Json out = {{"index", test.index}, {"value", test.value}};
  switch (test.compare) {
    case Compare::kEqual:
      out["op"] = "SCMP_CMP_EQ";
      return out;
    case Compare::kMasked:
      out["op"] = "SCMP_CMP_MASKED_EQ";
      out["value"] = test.mask;
      out["valueTwo"] = test.value;
      return out;
  }
  PROCTOR_ASSERT(false);
}

Json to_json(const CallRule& rule) {
  Json out = {{"names", rule.names}};
  out["action"] = rule.error == 0 ? "SCMP_ACT_ALLOW" : "SCMP_ACT_ERRNO";
  if (rule.error != 0) out["errnoRet"] = rule.error;
  if (!rule.tests.empty()) out["args"] = Json::array();
  for (const ArgumentTest& test : rule.tests) out["args"].push_back(to_json(test));
  return out;
}

}  // namespace

int call_number(std::uint32_t machine, std::string_view name) {
  const auto own = i386_numbers().find(name);
  if (machine == SCMP_ARCH_X86 && own != i386_numbers().end()) return own->second;
  return seccomp_syscall_resolve_name_arch(machine, std::string(name).c_str());
}

Result<std::string> make_seccomp_program(Programs whose) {
  const std::uint32_t native = seccomp_arch_native();
  if (seccomp_syscall_resolve_name_arch(native, "exit_group") < 0)
    return Error{Errc::kUnavailable, "seccomp: libseccomp does not know this processor's calls"};
  std::vector<std::uint32_t> machines = {native};
  if (whose == Programs::kAlso32Bits && native == SCMP_ARCH_X86_64)
    machines.push_back(SCMP_ARCH_X86);
  // Calls through another machine's table would pass by these rules.
  Code out = {give(answer(ENOSYS))};
  for (const std::uint32_t machine : machines) {
    Code next = {load(offsetof(seccomp_data, nr))};
    append(next, decide_by_number(machine));
    // Not this machine: over what is its own.
    Code one = {load(offsetof(seccomp_data, arch)),
                instruction(BPF_JMP | BPF_JEQ | BPF_K, machine, 1, 0),
                instruction(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(next.size()))};
    append(one, next);
    append(one, out);
    out = std::move(one);
  }
  PROCTOR_ASSERT(out.size() <= BPF_MAXINSNS);
  return std::string(reinterpret_cast<const char*>(out.data()), out.size() * sizeof(sock_filter));
}

Json seccomp_profile() {
  Json rules = Json::array();
  // What is refused needs no rule there, and must have none: libseccomp looks at sockets of 32 bits
  // by their family only where nothing speaks against it.
  for (const CallRule& rule : call_rules())
    if (rule.error == 0 || (rule.error == ENOSYS && !rule.rest)) rules.push_back(to_json(rule));
  const auto machine = [](const char* name, const char* narrow) {
    return Json{{"architecture", name}, {"subArchitectures", Json::array({narrow})}};
  };
  return {{"defaultAction", "SCMP_ACT_ERRNO"},
          {"archMap", Json::array({machine("SCMP_ARCH_X86_64", "SCMP_ARCH_X86"),
                                   machine("SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM")})},
          {"syscalls", std::move(rules)}};
}

}  // namespace proctor
