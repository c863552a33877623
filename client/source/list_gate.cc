#include "client/source/list_gate.h"

#include <utility>

#include "common/base/call_hook.h"

namespace firn {

ListGate::ListGate(std::optional<ListCache> cache, EventHook on_event)
    : cache_(std::move(cache)), on_event_(std::move(on_event)) {}

void ListGate::Open(ServerSource::Listener on_list) {
  const std::scoped_lock lock(mutex_);
  on_list_ = std::move(on_list);
  if (cache_) ReportCached();
}

void ListGate::ReportCached() {
  Result<ServerList> kept = cache_->Read();
  if (kept.ok() && !kept->servers.empty()) return Tell(*std::move(kept));
  if (!kept.ok() && kept.code() != Code::kNotFound) {
    Note("the kept list is not used: " + kept.status().message());
  }
}

void ListGate::Offer(ServerList list) {
  const std::scoped_lock lock(mutex_);
  if (!on_list_) return;
  if (list.servers.empty()) {
    if (!std::exchange(emptiness_noted_, true)) {
      Note(told_ ? "the directory lists no servers now; the last list is kept"
                 : "the directory lists no servers yet");
    }
    return;
  }
  emptiness_noted_ = false;
  if (told_ == list) return;
  Tell(list);
  if (!cache_) return;
  if (const Status kept = cache_->Write(list); !kept.ok()) {
    Note("the list could not be kept: " + kept.message());
  }
}

void ListGate::Show(ServerList list, bool again) {
  const std::scoped_lock lock(mutex_);
  if (on_list_ && (again || told_ != list)) Tell(std::move(list));
}

std::optional<ServerList> ListGate::told() {
  const std::scoped_lock lock(mutex_);
  return told_;
}

void ListGate::Tell(ServerList list) {
  told_ = std::move(list);
  on_list_(*told_);
}

void ListGate::Note(const std::string& sentence) const {
  CallHook(on_event_, ClientEvent{ClientEvent::Kind::kList, {}, sentence});
}

void ListGate::Close() {
  const std::scoped_lock lock(mutex_);
  on_list_ = nullptr;
}

}  // namespace firn
