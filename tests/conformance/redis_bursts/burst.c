// Bursts of INCR by hiredis' asynchronous interface: see bursts.py.

#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static short wanted;  // what the connection waits for
static int left;
static int failed;

static void add_read(void* unused) { (void)unused, wanted |= POLLIN; }
static void del_read(void* unused) { (void)unused, wanted &= ~POLLIN; }
static void add_write(void* unused) { (void)unused, wanted |= POLLOUT; }
static void del_write(void* unused) { (void)unused, wanted &= ~POLLOUT; }

static void on_reply(redisAsyncContext* redis, void* reply, void* unused) {
  (void)redis, (void)unused;
  --left;
  failed += reply == NULL || ((redisReply*)reply)->type != REDIS_REPLY_INTEGER;
}

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

int main(int argc, char** argv) {
  (void)argc;
  redisAsyncContext* redis = redisAsyncConnect("127.0.0.1", atoi(argv[1]));
  if (redis->err != 0) return 1;  // it has no descriptor to wait for
  redis->ev.addRead = add_read;
  redis->ev.delRead = del_read;
  redis->ev.addWrite = add_write;
  redis->ev.delWrite = del_write;
  for (int round = atoi(argv[3]); round > 0; --round) {
    const double began = now_ms();
    left = atoi(argv[2]);
    for (int i = left; i > 0; --i) redisAsyncCommand(redis, on_reply, NULL, "INCR default");
    while (left > 0) {
      struct pollfd polled = {redis->c.fd, wanted, 0};
      poll(&polled, 1, -1);
      if (polled.revents & POLLOUT) redisAsyncHandleWrite(redis);
      if (failed == 0 && polled.revents & ~POLLOUT) redisAsyncHandleRead(redis);
      if (failed > 0) return 1;  // the connection has ended, and is freed
    }
    printf("%d %f\n", failed, now_ms() - began);
  }
  redisAsyncFree(redis);
}
