#pragma once

#include <string_view>

#include "server/front/net/buffers.h"

namespace firn::front {

// A peer whose first bytes are of no speech that is served here: mostly a client with one setting
// wrong, who would otherwise see a closed connection and nothing else.

// What it seems to speak, for the log: "Redis".
std::string_view SpeechOfStranger(std::string_view first);

// Appends what it can read, where that is known: Thrift without frames is told, in its own form,
// that there have to be frames.
void TellStranger(std::string_view first, OutBuffer& out);

}  // namespace firn::front
