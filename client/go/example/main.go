// Takes ids with every kind of call, and prints events about servers.
//
//	go run ./example firn://127.0.0.1:7609 [TAG]
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	firn "firn.example/firn/client/go"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: example firn://host:port [TAG]")
		os.Exit(2)
	}
	tag := ""
	if len(os.Args) > 2 {
		tag = os.Args[2]
	}
	if fault := run(os.Args[1], tag); fault != nil {
		var failure *firn.Error
		if errors.As(fault, &failure) {
			fmt.Println(failure.Kind, failure.Reason)
			for _, attempt := range failure.Attempts {
				fmt.Println(attempt)
			}
		}
		fmt.Fprintln(os.Stderr, fault)
		os.Exit(1)
	}
}

func run(servers, tag string) error {
	client, fault := firn.New(servers, firn.Options{
		LocalRanges: []firn.LocalTag{firn.SnowflakeTag(tag)},
		OnEvent:     func(event firn.Event) { fmt.Println(event) },
	})
	if fault != nil {
		return fault
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	ids, fault := client.NextIDs(ctx, tag, 10)
	if fault != nil {
		return fault
	}
	fmt.Println("ten:", ids)
	text, fault := client.NextText(ctx, tag)
	if fault != nil {
		return fault
	}
	fmt.Println("text:", text)

	// Four goroutines with prefetched ids.
	var group sync.WaitGroup
	for i := 0; i < 4; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for j := 0; j < 1000; j++ {
				if _, fault := client.NextID(ctx, tag); fault != nil {
					fmt.Println(fault)
				}
			}
		}()
	}
	group.Wait()
	fmt.Println("from memory: 4000")
	return nil
}
