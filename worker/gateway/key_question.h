#pragma once
// Whether a provider still takes the operator's key, asked with nothing of an agent's: an empty
// object at the address of the calls.  A key that is taken hears what is missing (400) and costs
// nothing; one that is not hears so.  Blocking; any thread.  Internal to this room.
#include "worker/gateway/provider_connection.h"

namespace proctor {

// 401 and 403.
bool is_key_refusal(int status);

// The status of the answer; 0: there was none by then, and nobody knows.
int ask_about_key(ProviderPool& pool, const ModelAccess& access, ModelApi api, int stop,
                  SteadyClock::time_point until);

}  // namespace proctor
