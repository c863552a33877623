#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/front/desk/backend.h"
#include "server/front/desk/cluster_view.h"
#include "server/front/desk/id_desk.h"
#include "server/front/http/http_protocol.h"
#include "server/lease/lease_desk.h"

namespace firn::front {

// The handlers of the public side come first. `backend` and `desk` (of the same IO thread, with
// Method::kHttp) must outlive the handlers.

// /v1/ids/{tag}, /v1/explain/{id}, /v1/compose, /v1/time/{ticks}: JSON, with refusals as
// {"error":{...}} and HttpStatusOf their reason.
std::unique_ptr<HttpHandler> MakeNativeHandler(const Backend& backend, IdDesk& desk);

// Leaf: /api/segment/get/{key}, /api/snowflake/get/{key}, /decodeSnowflakeId. The first refuses
// snowflake tags; every error is status 500 with a sentence.
std::unique_ptr<HttpHandler> MakeLeafHandler(const Backend& backend, IdDesk& desk);

// Vesta: /genid, /expid, /transtime, /makeid. Ids of the default tag; times in UTC.
std::unique_ptr<HttpHandler> MakeVestaHandler(const Backend& backend, IdDesk& desk);

// Returns whether a token permits ids of a tag. Any thread.
using TokenCheck = std::function<bool(std::string_view token, std::string_view tag)>;

// Tinyid: /id/nextId, nextIdSimple, nextSegmentId, nextSegmentIdSimple, also below /tinyid.
// Without `tokens`, tokens are ignored.
std::unique_ptr<HttpHandler> MakeTinyidHandler(const Backend& backend, IdDesk& desk,
                                               TokenCheck tokens);

// Leases of machine ids: POST /v1/leases, and PUT and DELETE of /v1/leases/{lease}. With rights, a
// client needs the right to the tag `@lease`. `leases` must outlive it.
std::unique_ptr<HttpHandler> MakeLeaseHandler(const Backend& backend, LeaseDesk& leases);

// GET /v1/leases, on the admin side: the leases of this server, without their secrets. `hosts` as
// in MakeAdminHandler.
std::unique_ptr<HttpHandler> MakeLeaseListHandler(LeaseDesk& leases,
                                                  std::vector<std::string> hosts);

// GET /v1/servers, on both sides: the servers of the cluster, as JSON. Its ETag is the list's
// version.
std::unique_ptr<HttpHandler> MakeServersHandler(const Backend& backend);

// GET /v1/openapi.json, on both sides: describes every path of both.
std::unique_ptr<HttpHandler> MakeOpenApiHandler();

// The paths of the admin side, for operators:
//
//   GET  /healthz     200 while the process runs
//   GET  /readyz      200 if it can issue ids and clients should use it; otherwise 503 with state
//                     and reason; ?tag=T checks one tag
//   GET  /v1/status   the server's state, as JSON; each report once on a connection (StatusCache)
//   GET  /metrics     for Prometheus
//   GET  /v1/explain/{id}?layout=  the fields of an id, as on the public side
//   POST /v1/offline  tells clients to use other servers; POST /v1/online tells them to return
//
// It accepts requests to IP addresses, `localhost` and `hosts`, and changes nothing without the
// header X-Firn-Admin: 1 (AdminGuard). `backend` and `control` must outlive it; `metrics` returns
// the page /metrics and is called on the IO thread.
std::unique_ptr<HttpHandler> MakeAdminHandler(const Backend& backend, ServerControl& control,
                                              std::function<std::string()> metrics,
                                              std::vector<std::string> hosts);

// The console, for the same hosts: a page for a browser, which uses the paths of the admin side.
//
//   GET /                the page; GET /console/{file}: its parts
//   GET /v1/history      this server's last 15 minutes, from `history`; 404 if that is empty
//
// `history` is called on the IO thread.
std::unique_ptr<HttpHandler> MakeConsoleHandler(std::function<std::string()> history,
                                                std::vector<std::string> hosts);

// Refuses requests of other sites' pages and, if `hosts` is not empty, requests to other names.
// Must be the first handler of the public side: see PageGuard.
std::unique_ptr<HttpHandler> MakePageGuardHandler(std::vector<std::string> hosts);

// Refuses requests to names that the admin side does not permit. Must be its first handler.
std::unique_ptr<HttpHandler> MakeGuardHandler(std::vector<std::string> hosts);

// Reports about the whole cluster, for the same hosts, as JSON with `age_ms`. A request waits 2 s
// at most for the first one, then gets 503 with Retry-After:
//
//   GET /v1/audit     the holder of each machine id and those before it, the servers, all faults;
//                     without machine ids that were never used
//   GET /v1/tags      every tag with its fields, its state, and its next number
//   GET /v1/who/{id}  which process issued an id
std::unique_ptr<HttpHandler> MakeClusterHandler(ClusterView& cluster,
                                                std::vector<std::string> hosts);

}  // namespace firn::front
