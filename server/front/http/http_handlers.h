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

// The paths of the public side first. `backend` and `desk` (of the same IO thread, for
// Method::kHttp) must outlive what is made.

// /v1/ids/{tag}, /v1/explain/{id}, /v1/compose, /v1/time/{ticks}: JSON, with refusals as
// {"error":{...}} and the status that goes with their reason.
std::unique_ptr<HttpHandler> MakeNativeHandler(const Backend& backend, IdDesk& desk);

// Leaf: /api/segment/get/{key}, /api/snowflake/get/{key}, /decodeSnowflakeId. The first refuses
// snowflake tags; every error is status 500 with a sentence.
std::unique_ptr<HttpHandler> MakeLeafHandler(const Backend& backend, IdDesk& desk);

// Vesta: /genid, /expid, /transtime, /makeid. Ids of the default tag; times in UTC.
std::unique_ptr<HttpHandler> MakeVestaHandler(const Backend& backend, IdDesk& desk);

// May a token ask for ids of a tag? Any thread.
using TokenCheck = std::function<bool(std::string_view token, std::string_view tag)>;

// Tinyid: /id/nextId, nextIdSimple, nextSegmentId, nextSegmentIdSimple, also below /tinyid.
// Without `tokens`, every token is as good as none.
std::unique_ptr<HttpHandler> MakeTinyidHandler(const Backend& backend, IdDesk& desk,
                                               TokenCheck tokens);

// Leases of machine ids: POST /v1/leases, and PUT and DELETE of /v1/leases/{lease}. With rights, a
// client needs the right to the tag `@lease`. `leases` must outlive it.
std::unique_ptr<HttpHandler> MakeLeaseHandler(const Backend& backend, LeaseDesk& leases);

// GET /v1/leases, on the admin side, to the same hosts as MakeAdminHandler's: the leases of this
// server, without their secrets.
std::unique_ptr<HttpHandler> MakeLeaseListHandler(LeaseDesk& leases,
                                                  std::vector<std::string> hosts);

// GET /v1/servers, on either side: which servers the cluster has, as JSON. Its ETag is the list's
// version.
std::unique_ptr<HttpHandler> MakeServersHandler(const Backend& backend);

// GET /v1/openapi.json, on either side: every path of both, with what it takes and answers.
std::unique_ptr<HttpHandler> MakeOpenApiHandler();

// The paths of the admin side, for those who run the server:
//
//   GET  /healthz     200 while the process lives
//   GET  /readyz      200 when it could issue now and clients should come; else 503, with its state
//                     and why; ?tag=T asks for one tag
//   GET  /v1/status   everything that an operator asks first, as JSON; each report once on a
//                     connection (StatusCache)
//   GET  /metrics     for Prometheus
//   GET  /v1/explain/{id}?layout=  what an id says, as on the public side
//   POST /v1/offline  tells clients to go elsewhere; POST /v1/online tells them to come back
//
// It answers to addresses, `localhost` and `hosts`, and changes nothing without the header
// X-Firn-Admin: 1 (AdminGuard). `backend` and `control` must outlive it; `metrics` writes what
// /metrics answers, on the IO thread.
std::unique_ptr<HttpHandler> MakeAdminHandler(const Backend& backend, ServerControl& control,
                                              std::function<std::string()> metrics,
                                              std::vector<std::string> hosts);

// The console, to the same hosts: a page for a browser, made of the paths of the admin side.
//
//   GET /                the page; GET /console/{file}: its parts
//   GET /v1/history      what this server did in the past 15 minutes, as `history` writes it; not
//                        served if that is empty
//
// `history` is called on the IO thread.
std::unique_ptr<HttpHandler> MakeConsoleHandler(std::function<std::string()> history,
                                                std::vector<std::string> hosts);

// Refuses every request of another site's page, and, with `hosts`, of other names, before any other
// handler of the public side: see PageGuard.
std::unique_ptr<HttpHandler> MakePageGuardHandler(std::vector<std::string> hosts);

// Refuses every request of a host that the admin side does not answer to, before any other handler.
std::unique_ptr<HttpHandler> MakeGuardHandler(std::vector<std::string> hosts);

// What the admin side says of the whole cluster, to the same hosts, as JSON with its `age_ms`; 503
// with Retry-After while it is not known yet:
//
//   GET /v1/audit     who has which machine id and had it before, the servers, everything that is
//                     wrong; machine ids that were never used are left out
//   GET /v1/tags      every tag with all its fields, its state, and from where on it goes on
//   GET /v1/who/{id}  which process issued an id
std::unique_ptr<HttpHandler> MakeClusterHandler(ClusterView& cluster,
                                                std::vector<std::string> hosts);

}  // namespace firn::front
