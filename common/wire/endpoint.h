#pragma once
// Which endpoints may be used without CURVE: one place for the rule, asked by ZmqPort itself and by
// the commands that want to refuse early.
//
//   ipc://PATH       nothing else needed, but PATH's folder must be ours and closed to everyone
//   else tcp://HOST:PORT  CURVE; or --insecure-loopback and HOST literally 127.x.y.z or [::1]
//   inproc://NAME    inside one process: always
//
// Fails with kInvalid and a sentence for the operator.
#include <string>

#include "common/base/result.h"

namespace proctor::wire {

Status check_listen_endpoint(const std::string& endpoint, bool has_curve, bool insecure_loopback);
// The same rule for the side that connects (a worker obeys its coordinator, so it must know it
// too).
Status check_connect_endpoint(const std::string& endpoint, bool has_curve, bool insecure_loopback);

}  // namespace proctor::wire
