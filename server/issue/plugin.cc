#include "server/issue/plugin.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "common/base/cat.h"

namespace firn {
namespace {

Refusal Broken(const Plugin& plugin, std::string_view how) {
  return {Reason::kInternal, Cat("plugin ", plugin.name(), " ", how), 0, false};
}

// Calls a function of a plugin. Turns an exception, also bad_alloc, into a refusal.
template <typename Verb>
std::optional<Refusal> Guarded(const Plugin& plugin, Verb&& verb) {
  try {
    std::optional<Refusal> refusal = verb();
    if (refusal && refusal->retry_after_ms < 0) refusal->retry_after_ms = 0;
    if (refusal && static_cast<int>(refusal->reason) >= kReasons) {
      return Broken(plugin, "refused with an invalid reason");
    }
    return refusal;
  } catch (const std::exception& e) {
    return Broken(plugin, Cat("threw: ", e.what()));
  } catch (...) {
    return Broken(plugin, "threw something that is not a std::exception");
  }
}

bool IsSane(const IdRun& run) {
  int64_t length = 0, last = 0;
  if (run.count < 1 || run.first < 0 || (run.count > 1 && run.stride < 1)) return false;
  return !__builtin_mul_overflow(run.count - 1, run.stride, &length) &&
         !__builtin_add_overflow(run.first, length, &last);
}

bool AreSane(const Runs& runs, int64_t count) {
  return runs.count() == count && std::all_of(runs.runs().begin(), runs.runs().end(), IsSane);
}

// Runs one plugin's After on all ids. For ids that are processed in parts, runs it on the next
// part; then `work.done` is empty only after the last part.
std::optional<Refusal> RunAfter(Plugin& plugin, const Request& request, Runs& runs,
                                PluginWork& work) {
  const auto run = [&](Runs& ids, int64_t count) {
    auto refusal = plugin.After(request, ids);
    if (refusal || AreSane(ids, count)) return refusal;
    return std::optional(Broken(plugin, "returned invalid ids"));
  };
  if (plugin.effect() != Plugin::Effect::kEach || request.count <= PluginChain::kIdsPerPart) {
    return run(runs, request.count);
  }
  Runs part;
  int64_t count = 0;
  const bool last = work.at.ForNext(runs, PluginChain::kIdsPerPart, [&](int64_t id) {
    part.Add({id, 1, 1});
    ++count;
  });
  if (auto refusal = run(part, count)) return refusal;
  for (const IdRun& ids : part.runs()) work.done.Add(ids);
  if (last) {
    runs = std::exchange(work.done, {});
    work.at = {};
  }
  return std::nullopt;
}

}  // namespace

PluginChain::PluginChain(std::vector<std::shared_ptr<Plugin>> plugins)
    : plugins_(std::move(plugins)) {
  std::stable_sort(plugins_.begin(), plugins_.end(),
                   [](const auto& a, const auto& b) { return a->order() < b->order(); });
  changes_ids_ = std::any_of(plugins_.begin(), plugins_.end(), [](const auto& plugin) {
    return plugin->effect() != Plugin::Effect::kNone;
  });
}

std::optional<Refusal> PluginChain::Before(const Request& request) const {
  for (size_t i = 0; i < plugins_.size(); ++i) {
    Plugin& plugin = *plugins_[i];
    auto refusal = Guarded(plugin, [&] { return plugin.Before(request); });
    if (!refusal) continue;
    Tell(i, request, *refusal);
    return refusal;
  }
  return std::nullopt;
}

std::optional<Refusal> PluginChain::After(const Request& request, Runs& runs,
                                          PluginWork& work) const {
  for (; work.plugin < plugins_.size(); ++work.plugin) {
    Plugin& plugin = *plugins_[work.plugin];
    if (auto refusal = Guarded(plugin, [&] { return RunAfter(plugin, request, runs, work); })) {
      return refusal;
    }
    if (!work.done.empty()) return std::nullopt;
  }
  return std::nullopt;
}

void PluginChain::OnRefusal(const Request& request, const Refusal& refusal) const {
  Tell(plugins_.size(), request, refusal);
}

void PluginChain::Tell(size_t count, const Request& request, const Refusal& refusal) const {
  for (size_t i = 0; i < count; ++i) {
    try {
      plugins_[i]->OnRefusal(request, refusal);
    } catch (...) {  // ignored, because the call already has its refusal
    }
  }
}

}  // namespace firn
