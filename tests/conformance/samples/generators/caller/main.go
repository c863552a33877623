// Calls the adapters of client/GENERATORS.md as programs call the libraries.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/sony/sonyflake"

	firn "firn.example/firn/client/go"

	"caller/ids"
)

const calls = 1000

type node interface{ Generate() snowflake.ID }

type source interface{ NextID() (uint64, error) }

func main() {
	client, err := firn.New(os.Args[1], firn.Options{Deadline: time.Minute, AttemptLimit: 20 * time.Second})
	check(err)
	old, err := snowflake.NewNode(1)
	check(err)
	different := map[int64]bool{}
	for _, one := range []node{old, &ids.Node{Client: client, Tag: "default"}} {
		for i := 0; i < calls; i++ {
			different[one.Generate().Int64()] = true
		}
	}
	fmt.Println("different", len(different), "of", 2*calls)
	fmt.Println("time", (&ids.Node{Client: client, Tag: "default"}).Generate().Time())

	first := sonyflake.NewSonyflake(sonyflake.Settings{MachineID: func() (uint16, error) { return 1, nil }})
	var last uint64
	for _, one := range []source{first, &ids.Sonyflake{Client: client, Tag: "default"}} {
		for i := 0; i < calls; i++ {
			id, err := one.NextID()
			check(err)
			if id <= last {
				fmt.Println("not ascending:", id, "after", last)
			}
			last = id
		}
	}
	fmt.Println("ascending", 2*calls)
	fmt.Println("calls", client.Counters().Calls)
	client.Close()
	_, err = (&ids.Sonyflake{Client: client, Tag: "default"}).NextID()
	fmt.Println("failure", err != nil)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
