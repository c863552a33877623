// Package firn takes ids from a cluster of Firn servers.
//
//	client, err := firn.New("firn://10.0.0.7:7609,10.0.0.8:7609", firn.Options{})
//	id, err := client.NextID(ctx, "order")
//
// Ids have 64 bits and are never issued twice. A tag, such as "order", is the name under which a program
// requests ids; an empty tag is the servers' default.
//
// # Failures
//
// A call ends by the deadline of its context, or after [Options.Deadline] if the context has none. It tries up to
// [Options.AttemptsMax] servers, for at most [Options.AttemptLimit] each. If a server does not respond, is overloaded
// or cannot issue now, the call fails over to the next one. A retry is safe: the ids of a lost answer are never issued
// again. A call that fails returns an [*Error], which lists every attempt. Its Unwrap lets errors.Is find
// context.Canceled and context.DeadlineExceeded.
//
// # Prefetched ids
//
// [Options.LocalRanges] names tags whose ids are fetched before they are needed, so that [Client.NextID] costs a memory
// access. Ids in memory when the program ends are lost; they are never issued again.
//
// # Local ids
//
// A [LocalGenerator] makes ids in the program, under a machine id that a server leases to it. It continues while every
// server is unreachable, until the interval of the lease ends. A [MachineLease] is for the generator of another library.
//
// # Metrics
//
// [Client.Counters] returns what a client has done. The package firnvars publishes it with expvar.
package firn
