// Bursts of INCR by go-redis: see bursts.py.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	calls, _ := strconv.Atoi(os.Args[2])
	rounds, _ := strconv.Atoi(os.Args[3])
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1]})
	for range rounds {
		var group sync.WaitGroup
		var failed atomic.Int64
		began := time.Now()
		for range calls {
			group.Add(1)
			go func() {
				defer group.Done()
				if client.Incr(context.Background(), "default").Err() != nil {
					failed.Add(1)
				}
			}()
		}
		group.Wait()
		fmt.Println(failed.Load(), time.Since(began).Seconds()*1000)
	}
}
