#include "worker/model/model.h"

#include "worker/model/http_model.h"
#include "worker/model/program_model.h"

namespace proctor {

std::unique_ptr<Model> open_model(const ModelAccess& access) {
  return access.program.empty() ? open_http_model(access) : open_program_model(access);
}

}  // namespace proctor
