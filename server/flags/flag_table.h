#pragma once

// Every flag of firn-server, in the order and the groups of --help. FIRN_FLAGS is expanded three
// times: to define gflags, to copy plain values into ServerOptions after a range check, and to
// print --help.
//
//   GROUP(title)                                  starts a group of --help
//   NUMBER(type, flag, field, least, most, help)  a number, copied into `field`, which holds its
//                                                 default
//   LIMIT(type, flag, least, most, help)          the same, for the limit of that name
//   SWITCH(flag, field, help)                     a bool, copied into `field`
//   TEXT(flag, field, help)                       a string, copied into `field`
//   READ(type, flag, default, help)               a flag that options.cc reads with its own code
//   LIBRARY(flag)                                 a flag of gflags
//
// Help is one or two sentences, with the unit and the meaning of special values. --help appends the
// default.
#define FIRN_FLAGS(GROUP, NUMBER, LIMIT, SWITCH, TEXT, READ, LIBRARY)                              \
  GROUP("Addresses and cluster")                                                                   \
  READ(string, registry, "",                                                                       \
       "Registry of the cluster: zk://h:p,h:p/firn/<cluster>, dir:///path or static:<machine "     \
       "id>. Set it for every cluster of more than one server. Empty: the directory `registry` "   \
       "in --state_dir, for a server on loopback only.")                                           \
  READ(string, listen, "127.0.0.1:7609",                                                           \
       "Address of the public port, for all protocols. Change it to serve other hosts.")           \
  READ(string, listen_unix, "",                                                                    \
       "Path of a Unix socket on which the public side listens as well, without TLS. Set it for "  \
       "clients on this host. Empty: none.")                                                       \
  READ(string, listen_unix_mode, "0660",                                                           \
       "Permissions of the socket file of --listen_unix, in octal. They decide which users of "    \
       "this host may connect: 0660 admits its owner and its group, 0666 every user.")             \
  READ(string, advertise, "",                                                                      \
       "Address at which clients reach this server. Set it if --listen is 0.0.0.0, or behind "     \
       "address translation. Empty: the address of --listen.")                                     \
  READ(string, admin_listen, "127.0.0.1:7610",                                                     \
       "Address of the admin port. The address of --listen puts both on one port. Change it to "   \
       "reach metrics and console from other hosts.")                                              \
  READ(string, state_dir, "./firn-state",                                                          \
       "Folder in which this server keeps its state. Never share or copy it. Set it to a folder "  \
       "on a disk that outlives the process and its container.")                                   \
  READ(                                                                                            \
      string, state_name, "",                                                                      \
      "Name of this server's files in --state_dir. Empty: its application, port and address. Set " \
      "a name if the address can change; a server finds no files of another name.")                \
  READ(bool, embedded, false,                                                                      \
       "Use a directory registry in --state_dir although other hosts can reach this server. Set "  \
       "it for a cluster of one server.")                                                          \
  TEXT(registry_auth_file, credentials_file,                                                       \
       "File with `user:password` for ZooKeeper. Set it if the nodes of the cluster have ACLs.")   \
  TEXT(application, application,                                                                   \
       "Service name under which this server is listed. Change it to tell clusters apart.")        \
  GROUP("Tags")                                                                                    \
  READ(string, stores_file, "",                                                                    \
       "INI file that defines the stores of segment tags. Set it if a tag takes its ranges from "  \
       "a database.")                                                                              \
  TEXT(key_dir, key_dir,                                                                           \
       "Folder with the keys of obfuscated tags. Set it if there are such tags.")                  \
  TEXT(default_tag, node.default_tag,                                                              \
       "Tag used when a request does not name one. Change it for clients that cannot name a tag.") \
  READ(string, tinyid_token_file, "",                                                              \
       "File with the tokens of Tinyid's paths, one `<token>=<tag>,<tag>` per line. Empty: no "    \
       "token is required.")                                                                       \
  LIMIT(int32, issue_wait_ms, 0, 60'000,                                                           \
        "Maximum time that a request waits for ids, in milliseconds. Except over Thrift, the "     \
        "first calls for a tag that is new to this server, and calls for tags with buffer=owner, " \
        "may wait 1 s. Raise it for clients that do not retry.")                                   \
  GROUP("Dubbo")                                                                                   \
  READ(bool, dubbo, false,                                                                         \
       "Serve Dubbo consumers on the public port, and register this server for them in the "       \
       "registry's ZooKeeper.")                                                                    \
  READ(string, dubbo_make_id_order, "time_first",                                                  \
       "Order of the last arguments of Vesta's makeId, as consumers pass them: time_first (time, " \
       "seq, machine) or machine_first (machine, time, seq).")                                     \
  GROUP("Creation of the cluster")                                                                 \
  READ(string, layout, "",                                                                         \
       "Layout of snowflake ids, when this server creates the cluster. Set it to continue the "    \
       "ids of another generator, or for another split of bits. Empty: the existing cluster's "    \
       "layout, or `firn`.")                                                                       \
  TEXT(default_strategy, place.default_strategy,                                                   \
       "Strategy of undefined tags, when this server creates the cluster: `snowflake`, or empty "  \
       "to refuse them, so that a mistyped tag is noticed.")                                       \
  GROUP("Encryption and access")                                                                   \
  READ(string, tls_cert, "", "PEM file with the public port's certificate chain. Empty: no TLS.")  \
  READ(string, tls_key, "", "PEM file with the private key of --tls_cert; set both or neither.")   \
  READ(string, tls_client_ca, "",                                                                  \
       "PEM file with the authorities whose client certificates are accepted on the public port. " \
       "Empty: clients need no certificate.")                                                      \
  TEXT(rights_file, rights_file,                                                                   \
       "File that restricts clients to tags, one `NAME TAG,TAG` or `NAME *` per line: names on "   \
       "client certificates, and `redis:USER`. Beside tags, `@lease` permits leases of machine "   \
       "ids, `@lease:20` at most 20 of each server, and `@create` tags that become defined by "    \
       "their first use (firn set). Empty: every client may use every tag and take leases.")       \
  SWITCH(redis, redis,                                                                             \
         "Serve the Redis protocol (RESP2 and RESP3) on the public port. Set it to false if no "   \
         "client uses Redis.")                                                                     \
  TEXT(redis_auth_file, redis_auth_file,                                                           \
       "File with the users of the Redis protocol, one `user:password` per line. Empty: Redis "    \
       "clients need no login.")                                                                   \
  SWITCH(redis_incr_64bit, redis_incr_64bit,                                                       \
         "Let INCR and INCRBY return numbers of 2^53 and above, such as snowflake ids, as "        \
         "integers. Set it unless clients use JavaScript, which rounds them: use FIRN.ID there.")  \
  READ(string, admin_tls_cert, "",                                                                 \
       "PEM file with the admin port's certificate chain. Empty: no TLS on that port.")            \
  READ(string, admin_tls_key, "",                                                                  \
       "PEM file with the private key of --admin_tls_cert; set both or neither.")                  \
  READ(string, admin_tls_client_ca, "",                                                            \
       "PEM file with the authorities whose client certificates are accepted on the admin "        \
       "port. Empty: operators need no certificate.")                                              \
  READ(string, admin_hosts, "",                                                                    \
       "Host names accepted by the admin port besides localhost and addresses, separated by "      \
       "commas. Set it to open the console by a name.")                                            \
  READ(string, http_hosts, "",                                                                     \
       "Host names accepted by HTTP on the public port besides localhost and addresses, "          \
       "separated by commas. Pages of these sites may send requests. Empty: every name, and "      \
       "no page of another site.")                                                                 \
  GROUP("Machine id and clock")                                                                    \
  READ(int32, worker, -1,                                                                          \
       "Worker part of the machine id. Set it to assign machine ids by hand. -1: any.")            \
  NUMBER(int32, rack, node.claim.rack, 0, kMachinePartMax,                                         \
         "Rack part of the machine id. Set it if the cluster divides its machine ids among racks " \
         "or regions.")                                                                            \
  NUMBER(                                                                                          \
      int32, machine_ids, place.machine_ids, 1, kMachineIdsMax,                                    \
      "Number of machine ids that this server holds. Raise it for a higher rate: each adds the "   \
      "layout's full one. Ids of different calls within one millisecond are then unordered.")      \
  NUMBER(int32, leases_max, leases_max, 0, 10'000,                                                 \
         "Maximum number of machine ids that this server leases to programs with generators of "   \
         "their own. Raise it if the server refuses leases because it has too many. 0: none.")     \
  READ(string, sequencer, "atomic",                                                                \
       "Implementation of the sequence: atomic, mutex or spin. Change it only to compare them.")   \
  READ(string, sequence_start, "random",                                                           \
       "First sequence number of a millisecond: zero, random or carry (where the last one "        \
       "stopped). Set zero if ids must look like those of other generators: at a low rate all of " \
       "them then have the sequence 0, and fall on one shard of `id mod n`.")                      \
  READ(string, clock_policy, "run",                                                                \
       "While the wall clock is behind the last id: run continues to issue, strict refuses. Set "  \
       "strict if no id may be ahead of the wall clock.")                                          \
  NUMBER(int32, clock_jump_max_ms, node.id_clock.jump_max, 0, 3'600'000,                           \
         "Maximum lead of the wall clock that ids follow at once, in milliseconds. They follow a " \
         "greater lead if it lasts 30 s. Lower it if the time source makes errors.")               \
  NUMBER(int32, zk_skew_max_ms, node.claim.skew_max, 1, 600'000,                                   \
         "Maximum difference between the local clock and ZooKeeper's clock at which a machine id " \
         "may be claimed, in milliseconds. Raise it only until the wrong clock is corrected.")     \
  NUMBER(int32, session_timeout_ms, place.session_timeout, 1'000, 600'000,                         \
         "Timeout of the registry session, in milliseconds. Lower it to notice a killed server "   \
         "sooner; raise it if sessions expire on a slow network.")                                 \
  NUMBER(int32, claim_window_ms, node.claim.window, 1'000, kWindowMax.count(),                     \
         "Time ahead for which a machine id is claimed, in milliseconds: how long this server "    \
         "issues ids without its registry. Raise it to survive longer outages.")                   \
  NUMBER(int32, probation_ms, node.claim.probation, 0, 600'000,                                    \
         "Delay between the claim of a machine id and its first id, in milliseconds. Set it "      \
         "above twice --session_timeout_ms if ZooKeeper may lose data.")                           \
  NUMBER(int32, restore_probation_ms, node.claim.restore_probation, 0, 600'000,                    \
         "Time after `firn restore` in which new claims issue no ids, in milliseconds. In it, "    \
         "holders that were unknown to the restore are detected. Raise it if servers need longer " \
         "to reconnect.")                                                                          \
  SWITCH(offline_start, node.claim.offline_start,                                                  \
         "Resume the last claim at a start while the registry is unreachable. Set it to false on " \
         "a machine that is cloned, or restored from a snapshot, while the server runs.")          \
  TEXT(grant_dir, place.grant_dir,                                                                 \
       "Folder in memory (tmpfs) for the grant, with which a server resumes its machine id after " \
       "a crash. Set it to a tmpfs that outlives the container.")                                  \
  GROUP("Machine id without a registry (--registry=static:13)")                                    \
  SWITCH(static_first_start, place.static_first_start,                                             \
         "Confirm that the machine id was never used, so that the missing grant file is correct.") \
  SWITCH(static_clock_ok, place.static_clock_ok,                                                   \
         "Confirm that the wall clock is right although it is more than a day from the last id.")  \
  SWITCH(static_adopt, place.static_adopt,                                                         \
         "Confirm that the grant file was moved here on purpose, and that no other server uses "   \
         "it or its original. Pass this flag for one start only.")                                 \
  GROUP("History")                                                                                 \
  TEXT(history_file, history.path,                                                                 \
       "File that records the ids of tags with the plugin `history`. Empty: such tags are "        \
       "refused.")                                                                                 \
  NUMBER(int64, history_file_bytes_max, history.bytes_max, 4096, int64_t{1} << 40,                 \
         "Size at which a history file is rotated, in bytes. Lower it to have the latest ids in "  \
         "a smaller file.")                                                                        \
  NUMBER(int32, history_files_max, history.files_max, 1, 10'000,                                   \
         "Number of history files that are kept. Raise it to find older ids; lower it to save "    \
         "disk space.")                                                                            \
  GROUP("Clean stop")                                                                              \
  NUMBER(int32, drain_notice_ms, drain_notice, 0, 600'000,                                         \
         "Time between the notice to clients and the first refused call, in milliseconds. Raise "  \
         "it above the interval at which a load balancer checks /readyz.")                         \
  NUMBER(int32, drain_refuse_ms, drain_refuse, 0, 600'000,                                         \
         "Maximum time in which calls are refused before connections are closed, in "              \
         "milliseconds. Raise it if a stop resets connections of clients that call rarely.")       \
  NUMBER(int32, drain_patience_ms, drain_patience, 0, 600'000,                                     \
         "Maximum wait for unfinished calls after that, and before the first refused call for "    \
         "another owner of tags with buffer=owner, in milliseconds. Raise it with "                \
         "--issue_wait_ms.")                                                                       \
  GROUP("Limits")                                                                                  \
  READ(int32, io_threads, 0,                                                                       \
       "IO threads of the public port. Set it to use more cores, or fewer of a shared host. 0: "   \
       "one per core, at most 4.")                                                                 \
  LIMIT(int32, connections_max, 1, 1'000'000,                                                      \
        "Maximum connections on the public port. At the limit, the oldest incomplete request is "  \
        "closed, or the longest idle connection of the address that has most. For tags with "      \
        "buffer=owner, two places for each listed server, at most half of all, are reserved. "     \
        "Raise it if connections are closed as `too_many`.")                                       \
  LIMIT(int32, connections_per_peer_max, 1, 1'000'000,                                             \
        "Maximum connections from one address, from one /64 network of IPv6, or from one user of " \
        "the Unix socket. Raise it if many clients share a proxy.")                                \
  LIMIT(                                                                                           \
      int32, list_ids_max, 1, 1'000'000,                                                           \
      "Maximum ids in one call for a list of ids. Raise it for clients that take larger batches.") \
  LIMIT(int64, output_total_bytes_max, 1024, int64_t{1} << 40,                                     \
        "Maximum memory of all connections' buffers and TLS handshakes, in bytes. Above it, "      \
        "stalled connections of the address with the most memory are closed. Lower it on a host "  \
        "with little memory.")                                                                     \
  LIMIT(int32, spare_descriptors, 0, 100'000,                                                      \
        "File descriptors reserved for registry, stores and files. When no others are free, the "  \
        "public port closes a connection as at --connections_max, or accepts no more. Raise it "   \
        "if the server uses many stores.")                                                         \
  LIMIT(int32, idle_ms, 100, kDayMs,                                                               \
        "Time after which an idle connection is closed, in milliseconds. Raise it for clients "    \
        "that pause longer and do not reconnect.")                                                 \
  LIMIT(int32, half_request_ms, 100, kDayMs,                                                       \
        "Maximum time to receive one request, in milliseconds. Raise it for clients on slow "      \
        "networks.")                                                                               \
  GROUP("Log")                                                                                     \
  READ(string, log_level, "info",                                                                  \
       "Lowest level of the lines that are written: info, warning or error. Raise it to write "    \
       "less.")                                                                                    \
  READ(string, log_format, "text",                                                                 \
       "Format of the log on stderr: text, or json with one object per line, for log collectors.") \
  GROUP("General")                                                                                 \
  READ(bool, check_config, false,                                                                  \
       "Check all flags and the files that they name, print every fault, and exit: 0 when the "    \
       "configuration is valid, 2 when it is not.")                                                \
  LIBRARY(flagfile)                                                                                \
  LIBRARY(fromenv)                                                                                 \
  LIBRARY(tryfromenv)                                                                              \
  LIBRARY(version)                                                                                 \
  LIBRARY(help)                                                                                    \
  LIBRARY(helpfull)
