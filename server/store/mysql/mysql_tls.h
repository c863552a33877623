#pragma once

#include <mariadb/mysql.h>

#include "server/store/table/database_place.h"

namespace firn {

// Sets the TLS options of the connection that the calling thread opens next.
void SetTls(MYSQL& client, const StoreTls& tls);

}  // namespace firn
