// Ids a second of the Go client and of a bare stub: see ../../../rates.py.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	stubs "driver/gen/firn"
	firn "firn.example/firn/client/go"
	"github.com/apache/thrift/lib/go/thrift"
)

const (
	batch = 100
	bunch = 50
)

var (
	ctx     = context.Background()
	address = os.Args[1]
	seconds = number(os.Args[2])
	threads = int(number(os.Args[3]))
)

func number(text string) float64 {
	value, fault := strconv.ParseFloat(text, 64)
	must(fault)
	return value
}

func must(fault error) {
	if fault != nil {
		panic(fault)
	}
}

func stub() *stubs.IdServiceClient {
	transport := thrift.NewTFramedTransportConf(thrift.NewTSocketConf(address, nil), nil)
	must(transport.Open())
	protocol := thrift.NewTBinaryProtocolConf(transport, nil)
	return stubs.NewIdServiceClient(thrift.NewTStandardClient(protocol, protocol))
}

// measured is calls a second, after a warm-up, of goroutines that each call what `make` gives them.
func measured(make func() func() error) float64 {
	var calls []func() error
	for i := 0; i < threads; i++ {
		calls = append(calls, make())
	}
	spell(calls, seconds/4)
	return spell(calls, seconds)
}

func spell(calls []func() error, length float64) float64 {
	var count atomic.Int64
	var group sync.WaitGroup
	began := time.Now()
	for _, call := range calls {
		group.Add(1)
		go func(call func() error) {
			defer group.Done()
			mine := 0
			for ; time.Since(began).Seconds() < length; mine += bunch {
				for i := 0; i < bunch; i++ {
					must(call())
				}
			}
			count.Add(int64(mine))
		}(call)
	}
	group.Wait()
	return float64(count.Load()) / time.Since(began).Seconds()
}

func ours(call func(*firn.Client) error, local ...firn.LocalTag) float64 {
	client, fault := firn.New("firn://"+address, firn.Options{Deadline: 30 * time.Second,
		AttemptLimit: 10 * time.Second, LocalRanges: local})
	must(fault)
	defer client.Close()
	return measured(func() func() error { return func() error { return call(client) } })
}

func single(tag string) func(*firn.Client) error {
	return func(client *firn.Client) error {
		_, fault := client.NextID(ctx, tag)
		return fault
	}
}

func main() {
	bareSingle := measured(func() func() error {
		client := stub()
		return func() error { _, fault := client.GetId(ctx, "default"); return fault }
	})
	bareBatch := measured(func() func() error {
		client := stub()
		return func() error { _, fault := client.GetIds(ctx, "default", batch); return fault }
	})
	told, fault := json.Marshal(map[string]float64{
		"bare single": bareSingle,
		"bare batch":  batch * bareBatch,
		"single":      ours(single("default")),
		"batch": batch * ours(func(client *firn.Client) error {
			_, fault := client.NextIDs(ctx, "default", batch)
			return fault
		}),
		"ahead snowflake": ours(single("default"), firn.SnowflakeTag("default")),
		"ahead segment":   ours(single("count"), firn.SegmentTag("count"))})
	must(fault)
	fmt.Println(string(told))
}
