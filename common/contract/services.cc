#include <algorithm>
#include <functional>

#include "common/contract/contract.h"

namespace proctor {

bool runs_workspace(const Service& service) {
  return !service.container || !service.container->mounts.empty();
}

std::vector<std::size_t> services_of(const std::vector<Service>& services, const Check& check) {
  const auto index_of = [&](const std::string& name) {
    return static_cast<std::size_t>(std::ranges::find(services, name, &Service::name) -
                                    services.begin());
  };
  std::vector<bool> wanted(services.size(), !check.services);
  // As deep as there are services: the parser bounds their number.
  const std::function<void(std::size_t)> want = [&](std::size_t i) {
    wanted[i] = true;
    for (const std::string& other : services[i].depends_on)
      if (const std::size_t o = index_of(other); !wanted[o]) want(o);
  };
  if (check.services)
    for (const std::string& name : *check.services) want(index_of(name));
  std::vector<std::size_t> out;
  std::vector<bool> placed(services.size(), false);
  const std::function<void(std::size_t)> place = [&](std::size_t i) {
    if (placed[i]) return;
    placed[i] = true;
    for (const std::string& other : services[i].depends_on) place(index_of(other));
    out.push_back(i);
  };
  for (std::size_t i = 0; i < services.size(); ++i)
    if (wanted[i]) place(i);
  return out;
}

}  // namespace proctor
