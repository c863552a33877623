#include "client/call/connections.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace firn::client {

Connections::Connections(const PipelineHost& host, size_t most, bool gather)
    : host_(host),
      most_(most),
      gather_(gather),
      upkeep_timer_(host.io.context().get_executor()),
      names_([&fleet = host.fleet](const std::string& name, const std::vector<Address>& found) {
        fleet.Resolved(name, found);
      }) {}

std::shared_ptr<const Connection> Connections::Send(RequestPtr request, size_t attempt,
                                                    const ServerPtr& server, bool fresh) {
  PipelinePtr pipeline = To(server, request->ask, fresh);
  if (pipeline != nullptr) pipeline->Send(std::move(request), attempt);
  return pipeline;
}

PipelinePtr Connections::To(const ServerPtr& server, const Ask& ask, bool fresh) {
  Pipelines& open = pipelines_[server->number];
  const PipelinePtr* least = nullptr;
  for (const auto& pipeline : open) {
    if (fresh && !pipeline->opening()) continue;
    if (gather_ && pipeline->Gathers(ask)) return pipeline;
    if (pipeline->in_flight() == 0) return pipeline;
    if (least == nullptr || pipeline->in_flight() < (*least)->in_flight()) least = &pipeline;
  }
  const bool may_open = now() >= server->connect_at.load();
  if (least != nullptr && (!may_open || open.size() >= most_)) return *least;
  return may_open ? Open(server, open, nullptr) : nullptr;
}

PipelinePtr Connections::Open(const ServerPtr& server, Pipelines& among,
                              Pipeline::Checked checked) {
  Pipeline::Owner& owner = *this;
  auto pipeline = std::make_shared<Pipeline>(host_, owner, server);
  among.push_back(pipeline);
  pipeline->Open(host_.fleet.AddressesInTurn(*server), std::move(checked));
  return pipeline;
}

void Connections::CloseUnlisted() {
  Pipelines unlisted;
  for (const auto& [number, pipelines] : pipelines_) {
    std::ranges::copy_if(pipelines, std::back_inserter(unlisted), &Pipeline::left_over);
  }
  for (const auto& pipeline : unlisted) pipeline->Close(Outcome::Of(AttemptEnd::kAbandoned));
}

void Connections::CloseAll() {
  stopped_ = true;
  upkeep_timer_.cancel();
  names_.Stop();
  Pipelines all = probes_;
  for (const auto& [number, pipelines] : pipelines_) {
    all.insert(all.end(), pipelines.begin(), pipelines.end());
  }
  for (const auto& pipeline : all) pipeline->Close(Outcome::Of(AttemptEnd::kAbandoned));
}

void Connections::OnClosed(Pipeline& pipeline) {
  const auto is_it = [&](const auto& one) { return one.get() == &pipeline; };
  std::erase_if(probes_, is_it);
  const auto found = pipelines_.find(pipeline.server()->number);
  if (found == pipelines_.end()) return;
  std::erase_if(found->second, is_it);
  if (found->second.empty()) pipelines_.erase(found);
}

// --- upkeep -------------------------------------------------------------------------------------

void Connections::StartUpkeep() {
  DoUpkeep();
  upkeep_timer_.expires_after(kUpkeepInterval);
  upkeep_timer_.async_wait([this](const boost::system::error_code& error) {
    // An expired timer can no longer be cancelled.
    if (error || stopped_) return;
    const IoThread::Turn turn(host_.io);
    StartUpkeep();
  });
}

void Connections::DoUpkeep() {
  for (const ServerPtr& server : host_.fleet.TakeUnresolved(now())) {
    names_.Start(server->name, server->endpoint);
  }
  for (const ServerPtr& server : host_.fleet.TakeProbes(now())) Probe(server);
}

// Keeps the connection if calls may have another one; otherwise closes it after the probe.
void Connections::Probe(const ServerPtr& server) {
  Pipelines& open = pipelines_[server->number];
  const bool keep = open.size() < most_;
  Open(server, keep ? open : probes_,
       [this, keep](Pipeline& pipeline, const Outcome& outcome, const ServerFacts& facts) {
         host_.fleet.Probed(*pipeline.server(), outcome, facts, now());
         if (!keep) pipeline.Close(Outcome::Of(AttemptEnd::kAbandoned));
       });
}

}  // namespace firn::client
