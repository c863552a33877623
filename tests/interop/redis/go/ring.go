package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// ring HOST:PORT...: callers take ids of several tags through a Ring of these servers until standard
// input ends. Prints `id TAG N` for each id, and `failed MESSAGE` for each failed call.
func ring(servers []string) {
	addresses := map[string]string{}
	for i, server := range servers {
		addresses[fmt.Sprintf("server%d", i)] = server
	}
	client := redis.NewRing(&redis.RingOptions{
		Addrs: addresses, Protocol: 3, HeartbeatFrequency: 100 * time.Millisecond,
		MaxRetries: 10, MinRetryBackoff: 20 * time.Millisecond, MaxRetryBackoff: 500 * time.Millisecond,
		DialTimeout: time.Second, ReadTimeout: time.Second, WriteTimeout: time.Second,
	})
	defer client.Close()
	ctx, cancel := context.WithCancel(context.Background())
	var out sync.Mutex
	var callers sync.WaitGroup
	for caller := 0; caller < 8; caller++ {
		callers.Add(1)
		go func() {
			defer callers.Done()
			tag := fmt.Sprintf("order%d", caller)
			for ctx.Err() == nil {
				id, err := client.Incr(context.Background(), tag).Result()
				out.Lock()
				if err != nil {
					fmt.Println("failed", err)
				} else {
					fmt.Println("id", tag, id)
				}
				out.Unlock()
				time.Sleep(time.Millisecond)
			}
		}()
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
	}
	cancel()
	callers.Wait()
}
