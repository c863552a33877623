#include "registry/seam/answers.h"

#include <utility>

namespace firn {

void Tell(const AnyDone& done, Answer answer) {
  if (done.index() != answer.index()) Die("an answer of another verb");
  if (const auto* read = std::get_if<Coordinator::ReadDone>(&done)) {
    (*read)(std::move(std::get<Result<Node>>(answer)));
  } else if (const auto* list = std::get_if<Coordinator::ListDone>(&done)) {
    (*list)(std::move(std::get<Result<std::vector<std::string>>>(answer)));
  } else if (const auto* sync = std::get_if<Coordinator::SyncDone>(&done)) {
    (*sync)(std::move(std::get<Status>(answer)));
  } else {
    std::get<Coordinator::WriteDone>(done)(std::move(std::get<WriteOutcome>(answer)));
  }
}

void AnswerFailure(const AnyDone& done, Status status) {
  if (const auto* read = std::get_if<Coordinator::ReadDone>(&done)) {
    (*read)(std::move(status));
  } else if (const auto* list = std::get_if<Coordinator::ListDone>(&done)) {
    (*list)(std::move(status));
  } else if (const auto* sync = std::get_if<Coordinator::SyncDone>(&done)) {
    (*sync)(std::move(status));
  } else {
    std::get<Coordinator::WriteDone>(done)({std::move(status), -1, {}});
  }
}

void AnswerLost(const AnyDone& done, const std::string& why) {
  const bool write = std::holds_alternative<Coordinator::WriteDone>(done);
  AnswerFailure(done, write ? Unknown(why) : Unavailable(why));
}

RequestTable::Token RequestTable::Add(AnyDone done, BootMs deadline) {
  waiting_.emplace_hint(waiting_.end(), ++last_, Entry{std::move(done), deadline});
  return last_;
}

std::optional<AnyDone> RequestTable::Take(Token token) {
  const auto entry = waiting_.extract(token);
  if (entry.empty()) return std::nullopt;
  return std::move(entry.mapped().done);
}

std::vector<std::pair<RequestTable::Token, AnyDone>> RequestTable::TakeDue(BootMs now) {
  std::vector<std::pair<Token, AnyDone>> due;
  while (!waiting_.empty() && waiting_.begin()->second.deadline <= now) {
    due.emplace_back(waiting_.begin()->first, std::move(waiting_.begin()->second.done));
    waiting_.erase(waiting_.begin());
  }
  return due;
}

std::vector<AnyDone> RequestTable::TakeAll() {
  std::vector<AnyDone> all;
  for (auto& [token, entry] : waiting_) all.push_back(std::move(entry.done));
  waiting_.clear();
  return all;
}

std::optional<BootMs> RequestTable::NextDue() const {
  if (waiting_.empty()) return std::nullopt;
  return waiting_.begin()->second.deadline;
}

}  // namespace firn
