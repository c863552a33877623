#include "server/front/redis/redis_commands.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "server/front/desk/joint_calls.h"
#include "server/front/redis/redis_refusal.h"
#include "server/front/redis/resp_answer.h"

namespace firn::front {
namespace {

constexpr size_t kAnyNumber = SIZE_MAX;
// Maximum of an unknown command to quote, as in Redis.
constexpr size_t kShownBytesMax = 128;

std::string InLowerCase(std::string_view text) {
  std::string lower(text.substr(0, kShownBytesMax));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  return lower;
}

// Clients compare this text: some continue without the command only if they find it.
std::string UnknownCommand(const RespRequest& words) {
  std::string text =
      Cat("unknown command '", words[0].substr(0, kShownBytesMax), "', with args beginning with: ");
  const size_t end = text.size() + kShownBytesMax;
  const size_t kept = std::min(words.count, RespRequest::kKept);
  for (size_t i = 1; i < kept && text.size() < end; ++i) {
    text += Cat("'", words[i].substr(0, end - text.size()), "' ");
  }
  return text;
}

}  // namespace

RedisCommands::RedisCommands(const Backend& backend, IdDesk& desk, const RedisLogins* logins,
                             int64_t integer_max)
    : backend_(backend), desk_(desk), integer_max_(integer_max) {
  if (logins != nullptr) logins_.emplace(*logins);
}

const RedisCommands::Command* RedisCommands::Find(std::string_view name) {
  using R = RedisCommands;
  static constexpr Command kCommands[] = {
      {"incr", 2, 2, false, true, &R::Incr},
      {"incrby", 3, 3, false, true, &R::IncrBy},
      {"firn.id", 2, 2, false, true, &R::Id},
      {"firn.ids", 3, 3, false, true, &R::Ids},
      {"firn.text", 2, 2, false, true, &R::Text},
      {"get", 2, 2, false, true, &R::Get},
      {"hello", 1, kAnyNumber, true, false, &R::Hello},
      {"auth", 2, 3, true, false, &R::Auth},
      {"quit", 1, kAnyNumber, true, false, &R::Quit},
      {"reset", 1, 1, true, false, &R::Reset},
      {"multi", 1, 1, false, false, &R::Multi},
      {"exec", 1, 1, false, false, &R::Exec},
      {"discard", 1, 1, false, false, &R::Discard},
      {"watch", 2, kAnyNumber, false, false, &R::Watch},
      {"unwatch", 1, 1, false, true, &R::Unwatch},
      {"client", 2, kAnyNumber, false, true, &R::Client},
      {"select", 2, 2, false, true, &R::Select},
      {"ping", 1, 2, false, true, &R::Ping},
      {"echo", 2, 2, false, true, &R::Echo},
      {"info", 1, kAnyNumber, false, true, &R::Info},
      {"command", 1, kAnyNumber, false, true, &R::CommandList},
      {"cluster", 1, kAnyNumber, false, true, &R::Cluster},
  };
  const auto* const found = std::find_if(std::begin(kCommands), std::end(kCommands),
                                         [&](const Command& one) { return one.name == name; });
  return found == std::end(kCommands) ? nullptr : found;
}

bool RedisCommands::MayAsk(DoorCall& door) {
  if (!logins_) return true;
  auto* const session = static_cast<RedisSession*>(door.session.get());
  if (session == nullptr || door.user.empty()) return false;
  if (session->edition == logins_->edition()) return true;
  // Logs out a user whose line was removed.
  const std::string_view name = std::string_view(door.user).substr(kLoginPrefix.size());
  if (!logins_->Has(name)) door.user.clear();
  session->edition = logins_->edition();
  return !door.user.empty();
}

std::string RedisCommands::FaultOf(const Command* command, const RespRequest& request) {
  if (command == nullptr) return UnknownCommand(request);
  if (request.count >= command->least && request.count <= command->most) return {};
  return Cat("wrong number of arguments for '", command->name, "' command");
}

ServeStep RedisCommands::Run(const RespRequest& request, std::string_view bytes, DoorCall& door,
                             OutBuffer& out) {
  incremented_ = nullptr;  // set by an earlier request, perhaps of another connection
  RedisTransaction* const transaction = TransactionOf(door);
  if (transaction == nullptr) return RunNow(request, door, out);
  const Command* const command = Find(InLowerCase(request[0]));
  const bool runs_now = command != nullptr && !command->queued;
  if (runs_now || !MayAsk(door)) return RunNow(request, door, out);
  if (const std::string fault = FaultOf(command, request); !fault.empty()) {
    transaction->aborted = true;
    resp::AppendError("ERR", fault, out);
    return Answered();
  }
  return Queue(*transaction, bytes, out);
}

ServeStep RedisCommands::RunNow(const RespRequest& request, DoorCall& door, OutBuffer& out) {
  incremented_ = nullptr;
  const Command* const command = Find(InLowerCase(request[0]));
  if (!MayAsk(door) && (command == nullptr || !command->before_login)) return NoLogin(door, out);
  if (const std::string fault = FaultOf(command, request); !fault.empty()) {
    resp::AppendError("ERR", fault, out);
    return Answered();
  }
  Call call{request, door, out};
  return Safely(out, [&] { return (this->*command->run)(call); });
}

// Ends the transaction, which belongs to the user who began it.
ServeStep RedisCommands::NoLogin(DoorCall& door, OutBuffer& out) {
  if (door.session != nullptr) SessionOf(door).transaction.reset();
  resp::AppendError("NOAUTH", "Authentication required.", out);
  return Answered();
}

template <typename Serve>
ServeStep RedisCommands::Safely(OutBuffer& out, Serve serve) {
  const size_t before = out.size();
  try {
    return serve();
  } catch (const std::exception& e) {
    out.Truncate(before);
    resp::AppendError("ERR", Cat("a defect: ", e.what()), out);
    return Answered();
  }
}

// --- ids -----------------------------------------------------------------------------------------

template <typename Write>
ServeStep RedisCommands::Ask(Call& call, int64_t count, Form form, Write write) {
  const std::string_view tag = call.words[1];
  // Not the default tag: the key must be a tag's full name.
  if (tag.empty()) return Refuse(call, "the key is empty; it is the name of a tag");
  return Answer(desk_.Ask(tag, count, form, call.door), call.out, write);
}

template <typename Write>
ServeStep RedisCommands::Answer(Verdict verdict, OutBuffer& out, Write write) {
  switch (verdict) {
    case Verdict::kWait:
      return desk_.Park([this, write](WaitingIds waiting, DoorCall& door, OutBuffer& to) {
        if (!MayAsk(door)) return NoLogin(door, to);
        return Safely(to,
                      [&] { return Answer(desk_.Continue(std::move(waiting), door), to, write); });
      });
    case Verdict::kRefused:
      AppendRefusalOfDesk(out);
      break;
    case Verdict::kIssued:
      return write(desk_.call().runs(), out);
  }
  return Answered();
}

void RedisCommands::AppendRefusalOfDesk(OutBuffer& out) const {
  const Refusal& refusal = desk_.call().refusal();
  AppendRefusal(desk_.lacks_right() ? "NOPERM" : RedisCodeOf(refusal.reason), refusal, out);
}

ServeStep RedisCommands::Refuse(Call& call, std::string message) {
  desk_.Refuse({Reason::kBadRequest, std::move(message), 0, false});
  AppendRefusal(RedisCodeOf(Reason::kBadRequest), desk_.call().refusal(), call.out);
  return Answered();
}

ServeStep RedisCommands::OneInteger(Call& call) {
  if (IsTooLarge(call.words[1], 0, call.door)) return RefuseInteger(call.out);
  return Ask(call, 1, Form::kNumbers, [this](const Runs& runs, OutBuffer& out) {
    return AnswerInteger(runs[0].first, out);
  });
}

ServeStep RedisCommands::AnswerInteger(int64_t id, OutBuffer& out) {
  if (id > integer_max_) return RefuseInteger(out);
  resp::AppendInteger(id, out);
  return Answered();
}

ServeStep RedisCommands::RefuseInteger(OutBuffer& out) {
  desk_.Refuse(TooLargeForInteger());
  AppendRefusal(RedisCodeOf(Reason::kBadRequest), desk_.call().refusal(), out);
  return Answered();
}

bool RedisCommands::IsTooLarge(std::string_view tag, int64_t more, const DoorCall& door) const {
  if (integer_max_ == INT64_MAX || tag.empty()) return false;
  return desk_.NextAtLeast(tag, door) > integer_max_ - more;
}

ServeStep RedisCommands::Incr(Call& call) {
  const std::string_view tag = call.words[1];
  const Tag* const known = tag.empty() ? nullptr : desk_.Resolve(tag);
  const bool is_large = IsTooLarge(tag, 0, call.door);
  const auto id = is_large ? std::nullopt : desk_.One(known);
  const bool joins = !is_large && known != nullptr && desk_.Joins(*known);
  const bool is_quick = id ? *id <= integer_max_ : joins;
  // Only if the tag itself is defined: other names may become tags later.
  if (is_quick && known->name() == tag) incremented_ = known;
  return id ? AnswerInteger(*id, call.out) : OneInteger(call);
}

struct RedisCommands::JointAnswers {
  static constexpr bool kWaitsLong = true;

  bool MayAsk(int64_t left, DoorCall& door, OutBuffer& out) const {
    if (commands->MayAsk(door)) return true;
    for (; left > 0; --left) NoLogin(door, out);
    return false;
  }
  void Write(const Runs& ids, OutBuffer& out) const {
    ids.ForEach([&](int64_t id) { commands->AnswerInteger(id, out); });
  }
  void Refuse(int64_t left, OutBuffer& out) const {
    for (; left > 0; --left) commands->AppendRefusalOfDesk(out);
  }

  RedisCommands* commands;
};

std::optional<ServeStep> RedisCommands::IncrJointly(const Tag& tag, size_t calls, DoorCall& door,
                                                    OutBuffer& out) {
  const auto count = static_cast<int64_t>(calls);
  if (!desk_.Joins(tag) || IsTooLarge(tag.name(), count - 1, door)) return std::nullopt;
  const std::chrono::milliseconds patience(backend_.limits.issue_wait_ms);
  return JointCalls(desk_, tag, count, patience, JointAnswers{this}).Begin(door, out);
}

// The answer implies all numbers up to it, so they must be consecutive and unchanged by plugins.
ServeStep RedisCommands::IncrBy(Call& call) {
  const auto count = ParseNumber<int64_t>(call.words[2]);
  if (!count) return Error(call, "value is not an integer or out of range");
  if (*count == 1) return OneInteger(call);
  if (*count < 1) return Refuse(call, "the increment must be 1 or more: numbers only rise");
  if (*count > kRunsIdsMax) {
    return Refuse(call, Cat("the increment is ", *count, "; at most ", kRunsIdsMax));
  }
  if (IsTooLarge(call.words[1], *count - 1, call.door)) return RefuseInteger(call.out);
  return Ask(call, *count, Form::kOneRun,
             [this, last = *count - 1](const Runs& runs, OutBuffer& out) {
               return AnswerInteger(runs[0].At(last), out);
             });
}

ServeStep RedisCommands::Id(Call& call) {
  return Ask(call, 1, Form::kNumbers, [](const Runs& runs, OutBuffer& out) {
    resp::AppendDecimal(runs[0].first, out);
    return Answered();
  });
}

ServeStep RedisCommands::Ids(Call& call) {
  const int64_t most = backend_.limits.list_ids_max;
  const auto count = ParseNumberWithin<int64_t>(call.words[2], 1, most);
  if (!count) return Refuse(call, Cat("the count must be 1 to ", most));
  return Ask(call, *count, Form::kNumbers, [this](const Runs& runs, OutBuffer& out) {
    resp::AppendArray(static_cast<size_t>(runs.count()), out);
    return List(desk_.TakeWaiting(), {}, out);
  });
}

ServeStep RedisCommands::List(WaitingIds call, RunsCursor at, OutBuffer& out) {
  const auto append = [&out](int64_t id) { resp::AppendDecimal(id, out); };
  if (at.ForNext(call->runs(), IdDesk::kIdsPerTurn, append)) {
    desk_.GiveBack(std::move(call));
    return Answered();
  }
  const size_t memory = call->runs().memory();
  return ServeStep::More(
      ParkedAs([this, own = std::move(call), at](
                   DoorCall&, OutBuffer& to) mutable { return List(std::move(own), at, to); },
               memory));
}

ServeStep RedisCommands::Text(Call& call) {
  return Ask(call, 1, Form::kText, [this](const Runs& runs, OutBuffer& out) {
    std::string text;
    desk_.call().AppendText(runs[0].first, backend_.view.wall(), text);
    resp::AppendBulk(text, out);
    return Answered();
  });
}

ServeStep RedisCommands::Get(Call& call) {
  return Refuse(call, "a tag does not reveal its current number; take the next one with INCR");
}

// --- the server ----------------------------------------------------------------------------------

std::string RedisCommands::InfoText() const {
  const auto snapshot = backend_.status.Get();
  const ServerReport& report = snapshot->report;
  return Cat("# Server\r\nredis_version:", kRedisVersion, "\r\nredis_mode:standalone\r\n",
             "\r\n# Persistence\r\nloading:0\r\n", "\r\n# Replication\r\nrole:master\r\n",
             "\r\n# Firn\r\nfirn_version:", report.version,
             "\r\nfirn_state:", PhaseName(report.phase), "\r\nfirn_cluster:", report.cluster_uuid,
             "\r\nfirn_address:", report.address, "\r\nfirn_calls:", snapshot->sums.calls, "\r\n");
}

ServeStep RedisCommands::Info(Call& call) {
  resp::AppendBulk(InfoText(), call.out);
  return Answered();
}

// Clients that request the list of commands also work with an empty one.
ServeStep RedisCommands::CommandList(Call& call) {
  const std::string sub = InLowerCase(call.words[1]);
  if (sub == "count") {
    resp::AppendInteger(0, call.out);
  } else if (sub == "docs" && VersionOf(call.door) == 3) {
    resp::AppendNumber('%', 0, call.out);
  } else {
    resp::AppendArray(0, call.out);
  }
  return Answered();
}

ServeStep RedisCommands::Cluster(Call& call) {
  resp::AppendError("ERR", "This instance has cluster support disabled", call.out);
  return Answered();
}

}  // namespace firn::front
