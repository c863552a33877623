// Takes ids with hiredis, without TLS: see redis_clients_test.py.
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static redisContext *connection;

static redisReply *checked(void *reply) {
  if (reply != NULL) return reply;
  printf("error: %s\n", connection->errstr);
  exit(1);
}

// Sends a command that must not be refused. Returns its reply.
static redisReply *ask(const char *command, ...) {
  va_list arguments;
  va_start(arguments, command);
  redisReply *reply = checked(redisvCommand(connection, command, arguments));
  va_end(arguments);
  if (reply->type == REDIS_REPLY_ERROR) {
    printf("error: %s\n", reply->str);
    exit(1);
  }
  return reply;
}

static void print_id(const redisReply *reply) {
  if (reply->type != REDIS_REPLY_INTEGER) exit(1);
  printf("%lld\n", reply->integer);
}

// Sends INCR of a tag, `count` times without waiting. Prints the ids.
static void pipeline(int count) {
  for (int i = 0; i < count; ++i) redisAppendCommand(connection, "INCR %s", "order");
  for (int i = 0; i < count; ++i) {
    void *reply = NULL;
    if (redisGetReply(connection, &reply) != REDIS_OK) reply = NULL;
    print_id(checked(reply));
    freeReplyObject(reply);
  }
}

static void transaction(int count) {
  freeReplyObject(ask("MULTI"));
  for (int i = 0; i < count; ++i) freeReplyObject(ask("INCR %s", "order"));
  redisReply *all = ask("EXEC");
  for (size_t i = 0; i < all->elements; ++i) print_id(all->element[i]);
  freeReplyObject(all);
}

static void begin(const char *host, int port) {
  const struct timeval patience = {60, 0};
  connection = redisConnectWithTimeout(host, port, patience);
  if (connection == NULL || connection->err != 0) {
    printf("error: no connection\n");
    exit(1);
  }
  redisSetTimeout(connection, patience);
}

int main(int count_of_arguments, char **arguments) {
  if (count_of_arguments != 5) return 2;
  const int count = atoi(arguments[4]);
  begin(arguments[1], atoi(arguments[2]));
  if (getenv("FIRN_USER") != NULL) {
    freeReplyObject(ask("AUTH %s %s", getenv("FIRN_USER"), getenv("FIRN_PASSWORD")));
  }
  for (int i = 0; i < count; ++i) {
    redisReply *reply = ask("INCR %s", "order");
    print_id(reply);
    freeReplyObject(reply);
  }
  pipeline(count);
  transaction(count);
  redisReply *refused = checked(redisCommand(connection, "INCR nothing"));
  if (refused->type == REDIS_REPLY_ERROR) printf("refused: %s\n", refused->str);
  freeReplyObject(refused);
  redisFree(connection);
  return 0;
}
