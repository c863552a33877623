// Rates of LocalGenerator, bwmarrin/snowflake and sonyflake: see ../../generator_rates.py.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	firn "firn.example/firn/client/go"
	"github.com/bwmarrin/snowflake"
	"github.com/sony/sonyflake"
)

const (
	checked = 4_000 // ids of each goroutine that are compared with all others
	bunch   = 50    // ids between two checks of the end
)

type result struct {
	Taken     int       `json:"taken"`
	Different int       `json:"different"`
	Rates     []float64 `json:"rates"`
	CPU       []float64 `json:"cpu"`
}

var threads int

func must(fault error) {
	if fault != nil {
		panic(fault)
	}
}

func number(at int) int {
	value, fault := strconv.Atoi(os.Args[at])
	must(fault)
	return value
}

func cpu() time.Duration {
	var used syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func onThreads(work func(at int)) {
	var group sync.WaitGroup
	for i := 0; i < threads; i++ {
		group.Add(1)
		go func(at int) {
			defer group.Done()
			work(at)
		}(i)
	}
	group.Wait()
}

func different(take func() int64) int {
	ids := make([]int64, threads*checked)
	onThreads(func(at int) {
		for i := 0; i < checked; i++ {
			ids[at*checked+i] = take()
		}
	})
	seen := map[int64]bool{}
	for _, id := range ids {
		seen[id] = true
	}
	return len(seen)
}

// round returns ids a second and nanoseconds of processor time an id.
func round(length time.Duration, take func() int64) (float64, float64) {
	var over atomic.Bool
	var count atomic.Int64
	before, began := cpu(), time.Now()
	time.AfterFunc(length, func() { over.Store(true) })
	onThreads(func(int) {
		mine := int64(0)
		for ; !over.Load(); mine += bunch {
			for i := 0; i < bunch; i++ {
				take()
			}
		}
		count.Add(mine)
	})
	ids := float64(count.Load())
	return ids / time.Since(began).Seconds(), float64((cpu() - before).Nanoseconds()) / ids
}

func main() {
	threads = number(2)
	rounds, length := number(3), time.Duration(number(4))*time.Millisecond
	client, fault := firn.New(os.Args[1], firn.Options{})
	must(fault)
	local, fault := firn.NewLocalGenerator(context.Background(), client, firn.LeaseOptions{Name: "rates"})
	must(fault)
	node, fault := snowflake.NewNode(1)
	must(fault)
	sony := sonyflake.NewSonyflake(sonyflake.Settings{MachineID: func() (uint16, error) { return 1, nil }})
	names := []string{"firn", "bwmarrin", "sonyflake"}
	takes := []func() int64{
		func() int64 { id, fault := local.Next(); must(fault); return id },
		func() int64 { return node.Generate().Int64() },
		func() int64 { id, fault := sony.NextID(); must(fault); return int64(id) },
	}
	told := map[string]*result{}
	for i, name := range names {
		told[name] = &result{Taken: threads * checked, Different: different(takes[i])}
		round(length, takes[i]) // warms up
	}
	for i := 0; i < rounds; i++ {
		for i, name := range names {
			rate, cost := round(length, takes[i])
			told[name].Rates = append(told[name].Rates, rate)
			told[name].CPU = append(told[name].CPU, cost)
		}
	}
	text, fault := json.Marshal(told)
	must(fault)
	fmt.Println(string(text))
}
