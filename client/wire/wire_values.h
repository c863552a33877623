#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/wire/ask.h"
#include "client/wire/outcome.h"

namespace firn::wire {
class Refusal;
class IdRun;
class IdFields;
class ServerStatus;
class ServerList;
}  // namespace firn::wire

namespace firn::client {

// Converts the wire contract's types to the client's types. Pure functions.
Outcome FromWire(const wire::Refusal& refusal);
std::vector<IdRun> FromWire(const std::vector<wire::IdRun>& runs);
Explanation FromWire(const wire::IdFields& fields);
ServerFacts FromWire(const wire::ServerStatus& status);
// Drops invalid addresses, and servers beyond the limit.
ToldServers FromWire(const wire::ServerList& told);

// Returns the fault of an answer's ids, or "": there must be `count` ids without duplicates. Runs
// must ascend; single ids need not, because obfuscated ids do not.
std::optional<std::string> FaultOf(const std::vector<int64_t>& ids, int64_t count);
std::optional<std::string> FaultOf(const std::vector<IdRun>& runs, int64_t count);

}  // namespace firn::client
