#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/front/desk/backend.h"
#include "server/front/http/http_protocol.h"

namespace firn::front {

// The paths of the admin side, for those who run the server:
//
//   GET  /            the console: a page for a browser, made of the paths below
//   GET  /healthz     200 while the process lives
//   GET  /readyz      200 when it could issue now and clients should come; else 503, with its state
//                     and why; ?tag=T asks for one tag
//   GET  /v1/status   everything that an operator asks first, as JSON
//   GET  /metrics     for Prometheus
//   GET  /v1/explain/{id}?layout=  what an id says, as on the public side
//   POST /v1/offline  tells clients to go elsewhere; POST /v1/online tells them to come back
//
// All arguments must outlive it; `metrics` writes what /metrics answers, on the IO thread.
std::unique_ptr<HttpHandler> MakeAdminHandler(const Backend& backend, ServerControl& control,
                                              std::function<std::string()> metrics);

}  // namespace firn::front
