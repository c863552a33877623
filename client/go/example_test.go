package firn_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"testing"
	"time"

	firn "firn.example/firn/client/go"
)

// server is a server for the examples: FIRN_SERVER, or the usual address.
func server() string {
	if address := os.Getenv("FIRN_SERVER"); address != "" {
		return "firn://" + address
	}
	return "firn://127.0.0.1:7609"
}

func Example() {
	client, err := firn.New(server(), firn.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()

	id, err := client.NextID(ctx, "")
	fmt.Println(id, err) // one id
	ids, err := client.NextIDs(ctx, "", 100)
	fmt.Println(ids, err) // many in one call
	text, err := client.NextText(ctx, "")
	fmt.Println(text, err) // one in the text form of its tag
}

func Example_failure() {
	client, err := firn.New(server(), firn.Options{OnEvent: func(event firn.Event) { log.Println(event) }})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()

	_, err = client.NextID(ctx, "no-such-tag")
	var failure *firn.Error
	if errors.As(err, &failure) && failure.Kind == firn.Refused {
		fmt.Println(failure.Reason) // every server would refuse
	}
}

func ExampleOptions_localRanges() {
	client, err := firn.New(server(), firn.Options{Deadline: 2 * time.Second,
		LocalRanges: []firn.LocalTag{firn.SnowflakeTag("")}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for i := 0; i < 1000; i++ {
		if _, err := client.NextID(context.Background(), ""); err != nil { // from memory
			log.Fatal(err)
		}
	}
	fmt.Println(client.Counters().LocalIDs > 0)
}

func TestExamplesRun(t *testing.T) {
	if os.Getenv("FIRN_SERVER") == "" {
		t.Skip("FIRN_SERVER names no server")
	}
	Example()
	Example_failure()
	ExampleOptions_localRanges()
}
