package firnvars_test

import (
	"encoding/json"
	"expvar"
	"testing"

	firn "firn.example/firn/client/go"
	"firn.example/firn/client/go/firnvars"
)

func TestPublishShowsCountersAndServers(t *testing.T) {
	client, err := firn.New("list://127.0.0.1:1", firn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	firnvars.Publish("firn", client)
	var shown struct {
		Calls   *int64
		Servers map[string]string
	}
	if err := json.Unmarshal([]byte(expvar.Get("firn").String()), &shown); err != nil {
		t.Fatal(err)
	}
	if shown.Calls == nil || *shown.Calls != 0 || shown.Servers["127.0.0.1:1"] != "healthy" {
		t.Errorf("it shows %s", expvar.Get("firn"))
	}
}
