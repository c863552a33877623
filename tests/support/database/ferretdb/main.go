// Command ferretdb serves the MongoDB protocol for tests: FerretDB with SQLite, in a folder.
//
//	ferretdb ADDRESS FOLDER [CERT KEY [CA]]    with a certificate: TLS only; with an authority: requires
//	                                           a client certificate of it
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	if len(os.Args) != 3 && len(os.Args) != 5 && len(os.Args) != 6 {
		log.Fatal("usage: ferretdb ADDRESS FOLDER [CERT KEY [CA]]")
	}
	listener := ferretdb.ListenerConfig{TCP: os.Args[1]}
	if len(os.Args) > 4 {
		listener = ferretdb.ListenerConfig{TLS: os.Args[1], TLSCertFile: os.Args[3], TLSKeyFile: os.Args[4]}
	}
	if len(os.Args) > 5 {
		listener.TLSCAFile = os.Args[5]
	}
	server, err := ferretdb.New(&ferretdb.Config{
		Listener: listener, Handler: "sqlite", SQLiteURL: "file:" + os.Args[2] + "/"})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := server.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
