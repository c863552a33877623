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

// The wire contract's types as the client's own. Pure functions.
Outcome FromWire(const wire::Refusal& refusal);
std::vector<IdRun> FromWire(const std::vector<wire::IdRun>& runs);
Explanation FromWire(const wire::IdFields& fields);
ServerFacts FromWire(const wire::ServerStatus& status);
// Without what is no address, and without what is too much.
ToldServers FromWire(const wire::ServerList& told);

// What is wrong with the ids of one answer, if anything is: they must be `count`, and no two the
// same. Runs must ascend from each one to the next; ids need not, for obfuscated ones do not.
std::optional<std::string> FaultOf(const std::vector<int64_t>& ids, int64_t count);
std::optional<std::string> FaultOf(const std::vector<IdRun>& runs, int64_t count);

}  // namespace firn::client
