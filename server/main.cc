// firn-server: issues 64-bit ids that are never issued twice.

#include "server/server_main.h"

int main(int argc, char** argv) { return firn::ServerMain(argc, argv); }
