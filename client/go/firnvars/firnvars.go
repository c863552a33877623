// Package firnvars publishes the counters of a Firn client with the standard library's expvar.
//
//	firnvars.Publish("firn", client)
//
// It is a package of its own because importing expvar adds a handler to http.DefaultServeMux.
package firnvars

import (
	"expvar"

	firn "firn.example/firn/client/go"
)

// vars is what a client shows.
type vars struct {
	firn.Counters
	Servers map[string]string `json:"servers"` // the health of each server, by address
}

// Var returns a variable that shows the client's counters, and the health of each server.
func Var(client *firn.Client) expvar.Var {
	return expvar.Func(func() any {
		now := vars{Counters: client.Counters(), Servers: map[string]string{}}
		for _, one := range client.Servers() {
			now.Servers[one.Address] = one.Health
		}
		return now
	})
}

// Publish publishes Var under the name. Like expvar.Publish, it panics if the name is in use.
func Publish(name string, client *firn.Client) {
	expvar.Publish(name, Var(client))
}
